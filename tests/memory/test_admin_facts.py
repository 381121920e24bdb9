"""Facts in the admin: veiled where they are private, decided on, forgotten."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from chat.models import Session
from memory import facts
from memory.admin import mixins
from memory.facts import Statement
from memory.models import (
    Activity,
    ActivityVerb,
    Chunk,
    Fact,
    FactSource,
    FactStatus,
    SourceType,
)
from memory.recall import fact_chunks, summaries
from memory.recall.embedders import get_for_facts
from projects.models import Membership

pytestmark = pytest.mark.django_db

LIST, CHUNKS = "/admin/memory/fact/", "/admin/memory/chunk/"
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def fact(project, owner):
    member = Membership.objects.select_related("project", "user").get(user=owner)
    return facts.create_fact(
        member, Statement("Billing", "is owned by", "the platform team", MARCH)
    )[0]


@pytest.fixture
def fact_source(fact, chat, entry, project):
    """The fact with a source in a shared chat."""
    message = chat.messages.first()
    return FactSource.objects.create(
        project=project,
        fact=fact,
        session=chat,
        message=message,
        entry=entry,
        valid_from=MARCH,
        confidence=0.8,
    )


def act(client, action: str, **more):
    picked = list(Fact.objects.values_list("pk", flat=True))
    return client.post(LIST, {"action": action, "_selected_action": picked} | more, follow=True)


@pytest.fixture
def staff(client, person):
    def sign_in(*codenames: str):
        user = person("mona")
        user.is_staff = True
        user.save()
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(user)
        return client

    return sign_in


def test_a_fact_is_listed_with_its_end_and_its_sources(admin_client, fact_source, owner):
    facts.close(fact_source.fact, datetime(2026, 5, 1, tzinfo=UTC), owner)
    listed = admin_client.get(LIST).content.decode()
    assert "Billing is owned by the platform team" in listed and "1 May 2026" in listed
    response = admin_client.get(reverse("admin:memory_fact_change", args=[fact_source.fact_id]))
    assert str(fact_source.message_id) in response.content.decode()


def test_it_is_hidden_and_shown_and_approved(admin_client, fact):
    act(admin_client, "hide")
    assert Fact.objects.get().state == FactStatus.HIDDEN
    assert "has already decided" in act(admin_client, "hide").content.decode()
    act(admin_client, "show")
    assert Fact.objects.get().state == FactStatus.LIVE
    Fact.objects.update(state=FactStatus.PROPOSED, waits_because="asked")
    act(admin_client, "approve")
    assert Fact.objects.get().state == FactStatus.LIVE
    verbs = Activity.objects.order_by("id").values_list("verb", flat=True)
    assert list(verbs) == ["recorded", "hidden", "shown", "approved"]


def test_a_reworded_fact_keeps_its_former_words(admin_client, admin_user, fact):
    path = reverse("admin:memory_fact_change", args=[fact.pk])
    data = {"subject": "Billing", "predicate": "is owned by", "object": "the payments team"}
    data |= {"valid_from_0": "2026-03-01", "valid_from_1": "00:00:00", "version": 1}
    admin_client.post(path, data)
    fact.refresh_from_db()
    assert (fact.object, fact.version, fact.valid_from) == ("the payments team", 2, MARCH)
    assert Fact.objects.get(earlier_of=fact).object == "the platform team"
    assert Activity.objects.get(verb=ActivityVerb.EDITED).by == admin_user
    assert "Someone changed this fact" in admin_client.post(path, data).content.decode()
    data |= {"version": 2, "valid_until_0": "2026-02-01", "valid_until_1": "00:00:00"}
    assert "after the start" in admin_client.post(path, data).content.decode()
    fact.refresh_from_db()
    assert (fact.version, fact.valid_until) == (2, None)


def test_forgetting_asks_first(admin_client, fact):
    response = act(admin_client, "forget")
    assert "Forget permanently" in response.content.decode() and Fact.objects.exists()
    act(admin_client, "forget", confirmed="yes", reason="private")
    assert not Fact.objects.exists()
    assert Activity.objects.get(verb=ActivityVerb.FORGOTTEN).reason == "private"


def test_too_many_selected_rows_are_refused_and_none_is_changed(admin_client, fact, monkeypatch):
    monkeypatch.setattr(mixins, "MAX_ROWS_AT_ONCE", 0)
    assert "Select at most 0 rows." in act(admin_client, "hide").content.decode()
    forgotten = act(admin_client, "forget", confirmed="yes", reason="other")
    assert "Select at most 0 rows." in forgotten.content.decode()
    assert Fact.objects.get().state == FactStatus.LIVE


def test_a_user_with_view_permission_changes_nothing(staff, fact):
    client = staff("view_fact")
    assert 'value="hide"' not in client.get(LIST).content.decode()
    act(client, "hide"), act(client, "forget", confirmed="yes", reason="other")
    path = reverse("admin:memory_fact_change", args=[fact.pk])
    assert client.post(path, {"subject": "Sales", "version": 1}).status_code == 403
    assert Fact.objects.get().state == FactStatus.LIVE


def test_a_private_fact_is_redacted_and_opening_it_leaves_a_trace(admin_client, fact_source, owner):
    Session.objects.update(visibility="private")
    listed = admin_client.get(LIST).content.decode()
    assert "(private)" in listed and "platform team" not in listed
    assert "0 facts" in admin_client.get(LIST, {"q": "platform"}).content.decode()
    assert "1 fact" in admin_client.get(LIST, {"q": str(fact_source.fact_id)}).content.decode()
    admin_client.get(reverse("admin:memory_fact_change", args=[fact_source.fact_id]))
    assert (
        Activity.objects.filter(verb=ActivityVerb.READ, session_id=fact_source.session_id).count()
        == 1
    )


def test_a_personal_fact_is_redacted_too(admin_client, fact, owner):
    Fact.objects.update(user=owner)
    assert "platform team" not in admin_client.get(LIST).content.decode()
    admin_client.get(reverse("admin:memory_fact_change", args=[fact.pk]))
    assert Activity.objects.filter(verb=ActivityVerb.READ, fact_id=fact.pk).count() == 1


def test_the_list_takes_the_same_queries_for_many(
    admin_client, fact, project, owner, django_assert_max_num_queries
):
    member = Membership.objects.select_related("project", "user").get(user=owner)
    for number in range(12):
        facts.create_fact(member, Statement(f"Service {number}", "is owned by", "sales", MARCH))
    with django_assert_max_num_queries(9):
        admin_client.get(LIST)


@pytest.mark.parametrize("is_personal", [False, True])
def test_the_index_shows_no_text_of_private_facts_and_summaries(
    admin_client, fact_source, entry, owner, is_personal
):
    Session.objects.update(visibility="private")
    Fact.objects.update(user=owner if is_personal else None)
    summary = summaries.make_chunk(entry)
    summary.tokens = 9
    summary.save()
    fact_chunks.write(entry.project, [fact_source.fact_id], get_for_facts())
    words = {SourceType.FACT: "platform team", SourceType.ENTRY: entry.summary[:20]}
    for kind, text in words.items():
        chunk = Chunk.objects.get(source_type=kind)
        assert text in chunk.text
        for address in (CHUNKS, f"{CHUNKS}{chunk.pk}/change/"):
            assert text not in admin_client.get(address).content.decode()
        assert str(chunk.pk) not in admin_client.get(CHUNKS, {"q": text}).content.decode()
        assert str(chunk.pk) in admin_client.get(CHUNKS, {"q": str(chunk.source)}).content.decode()


def test_an_earlier_version_of_a_private_fact_is_hidden_too(admin_client, fact_source, owner):
    Session.objects.update(visibility="private")
    fact = fact_source.fact
    facts.edit(fact, Statement("Billing", "is owned by", "the payments team", MARCH), owner)
    listed = admin_client.get(LIST).content.decode()
    assert listed.count("(private)") == 2 and "the platform team" not in listed
    assert "the platform team" not in admin_client.get(f"{LIST}?q=platform").content.decode()
    earlier = Fact.objects.get(earlier_of=fact)
    admin_client.get(reverse("admin:memory_fact_change", args=[earlier.pk]))
    assert Activity.objects.filter(verb=ActivityVerb.READ).exists()
