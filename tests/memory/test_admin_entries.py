"""Moderation of entries in the admin."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from chat.models import Message, Session, Visibility
from memory.models import Activity, ActivityVerb, Entry, EntryStatus
from memory.moderation import entry_operations

pytestmark = pytest.mark.django_db

LIST = "/admin/memory/entry/"
MAY_ACT = ("view_entry", "change_entry")
MAY_FORGET = (*MAY_ACT, "delete_entry", "view_activity")


@pytest.fixture
def staff(client, person):
    """A client of staff with the permissions of these names."""

    def sign_in(*codenames: str):
        user = person("mona")
        user.is_staff = True
        user.save()
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(user)
        return client

    return sign_in


def ask(client, action: str, entries=None, **fields) -> str:
    """What the page says that an act leads to, or, `confirmed`, the one after it."""
    chosen = Entry.objects.all() if entries is None else entries
    form = {"action": action, "_selected_action": [entry.pk for entry in chosen], **fields}
    return " ".join(client.post(LIST, form, follow=True).content.decode().split())


def act(client, action: str, entries=None, **fields) -> str:
    return ask(client, action, entries, reason="outdated", confirmed="yes", **fields)


def stored_state() -> tuple[str, bool]:
    return Entry.objects.values_list("state", "pinned").get()


def test_proposed_entries_come_first_and_states_are_counted(staff, entry, remember, project):
    other = Session.objects.create(project=project)
    waits = remember("- Waits", other, state=EntryStatus.PROPOSED, waits_because="asked")
    later = remember("- Later", Session.objects.create(project=project))
    text = staff("view_entry").get(LIST).content.decode()
    assert text.index(str(waits.pk)) < text.index(str(later.pk)) < text.index(str(entry.pk))
    assert "Needs review (1)" in text
    assert "In use (2)" in text


@pytest.mark.parametrize("query", ["?state=proposed", "?waits_because=asked", "?withheld__exact=0"])
def test_it_is_filtered(staff, entry, query):
    listed = staff("view_entry").get(LIST + query)
    assert listed.status_code == 200


@pytest.mark.parametrize(
    ("before", "action", "after"),
    [
        ({"state": "proposed"}, "approve", ("live", False)),
        ({"state": "proposed"}, "reject", ("hidden", False)),
        ({"state": "hidden"}, "approve", ("hidden", False)),
        ({"state": "hidden"}, "show", ("live", False)),
        ({"state": "live"}, "hide", ("hidden", False)),
        ({"state": "live"}, "pin", ("live", True)),
        ({"state": "live", "pinned": True}, "unpin", ("live", False)),
        ({"state": "live"}, "resummarise", ("stale", False)),
    ],
)
def test_moderators_act_after_a_preview(staff, entry, before, action, after):
    Entry.objects.update(**before)
    client = staff(*MAY_ACT)
    unchanged = stored_state()
    assert 'name="reason"' in ask(client, action)
    assert stored_state() == unchanged
    act(client, action)
    assert stored_state() == after


def test_the_act_is_on_the_record_with_who_and_why(staff, entry):
    act(staff(*MAY_ACT), "hide")
    done = Activity.objects.get(verb=ActivityVerb.HIDDEN)
    assert (done.by.username, done.reason) == ("mona", "outdated")


def test_the_page_tells_what_would_change(staff, entry, day):
    text = ask(staff(*MAY_ACT), "hide", [entry])
    assert "<b>1 later summary</b> will be rewritten." in text
    assert "<del>- 12 Mar: A day about the replica</del>" in text


def test_a_refused_entry_shows_why_and_the_others_are_done(staff, entry, remember, project):
    chat = Session.objects.create(project=project)
    remember("- Waits", chat, state=EntryStatus.PROPOSED)
    text = act(staff(*MAY_ACT), "approve")
    assert "Approved: 1." in text
    assert "Someone else has already decided this." in text


def test_a_pin_that_does_not_fit_says_why(staff, entry, project):
    project.bank_max_tokens = 10
    project.save()
    assert "half of the budget" in act(staff(*MAY_ACT), "pin")
    assert not Entry.objects.get().pinned


@pytest.mark.parametrize("action", ["approve", "hide", "pin", "edit", "forget", "redact"])
def test_a_user_with_view_permission_does_not_act(staff, entry, action):
    before = Entry.objects.values().get()
    text = act(staff("view_entry"), action, text="x")
    assert f'value="{action}"' not in text
    assert Entry.objects.values().get() == before


@pytest.mark.parametrize("action", ["forget", "redact"])
def test_irreversible_actions_need_the_permission_to_delete(staff, entry, action):
    act(staff(*MAY_ACT), action, text="seven")
    assert Entry.objects.get().summary == "- The replica stays seven days"


def test_an_edit_is_shown_beside_the_text_of_now_and_then_done(staff, entry):
    client = staff(*MAY_ACT)
    assert "- The replica stays seven days</textarea>" in ask(client, "edit")
    text = ask(client, "edit", text="- The replica stays ten days", revision=1)
    assert "<del>seven </del>" in text
    assert "<ins>ten </ins>" in text
    assert Entry.objects.get().summary == "- The replica stays seven days"
    act(client, "edit", text="- The replica stays ten days", revision=1)
    assert Entry.objects.get().summary == "- The replica stays ten days"
    assert Entry.objects.get().written_by == "mona"


def test_an_edit_that_was_overtaken_keeps_its_text(staff, entry, owner):
    entry_operations.edit(entry, "- Theirs", owner)
    text = act(staff(*MAY_ACT), "edit", text="- Mine", revision=1)
    assert "changed this text while you were editing" in text
    assert "- Mine</textarea>" in text
    assert Entry.objects.get().summary == "- Theirs"


def test_actions_with_a_text_take_one_entry_at_a_time(staff, entry, day):
    assert "Select a single memory" in ask(staff(*MAY_ACT), "edit")


def test_a_forgetting_is_previewed_and_leads_to_its_receipt(staff, entry):
    client = staff(*MAY_FORGET)
    assert "<dt>1</dt><dd>memory</dd>" in ask(client, "forget")
    assert Entry.objects.exists()
    text = act(client, "forget")
    assert not Entry.objects.exists()
    assert Message.objects.filter(remembered=False).count() == 2
    assert "Receipt" in text
    assert ">memory</th>" in " ".join(text.split())
    assert "searched for afterwards" in text


def test_the_messages_go_too_where_that_is_wanted(staff, entry):
    act(staff(*MAY_FORGET), "forget", sources="on")
    assert not Message.objects.exclude(text="").exists()


def test_two_texts_are_compared(staff, entry, owner):
    entry_operations.edit(entry, "- The replica stays ten days", owner)
    client = staff("view_entry")
    text = client.get(f"{LIST}{entry.pk}/texts/").content.decode()
    assert "<del>seven </del>" in text
    assert "<ins>ten </ins>" in text
    link = reverse("admin:memory_entry_texts", args=[entry.pk])
    assert link in client.get(f"{LIST}{entry.pk}/change/").content.decode()


def test_texts_are_for_staff_who_may_look(staff, entry, client, owner):
    url = f"{LIST}{entry.pk}/texts/"
    client.force_login(owner)
    assert client.get(url).status_code == 302
    assert staff("view_project").get(url).status_code == 403
    missing = f"{LIST}0190163d-8694-739b-aea5-966c26f8ad91/texts/"
    assert client.get(missing).status_code == 404


def test_no_page_has_a_script_or_a_style_of_its_own(staff, entry, owner):
    entry_operations.edit(entry, "- The replica stays ten days", owner)
    client = staff(*MAY_FORGET)
    pages = [
        client.get(f"{LIST}{entry.pk}/change/").content.decode(),
        client.get(f"{LIST}{entry.pk}/texts/").content.decode(),
        ask(client, "edit", text="- Another"),
        ask(client, "hide"),
    ]
    for text in pages:
        assert " style=" not in text
        assert "<style" not in text
        assert " onclick=" not in text


def test_a_preview_over_several_projects_tells_of_each(staff, entry, owner, remember):
    from projects.services import create_project

    other = create_project(owner, name="Another house")
    chat = Session.objects.create(project=other)
    Entry.objects.create(
        project=other,
        session=chat,
        granularity="conversation",
        period_key="2026-03-12",
        zone="UTC",
        first_seq=1,
        last_seq=1,
        summary="- Elsewhere",
        tokens=9,
        message_count=1,
        first_source_at=entry.first_source_at,
        last_source_at=entry.last_source_at,
        written_by="scripted",
    )
    text = ask(staff(*MAY_ACT), "hide")
    assert "<h2>Another house</h2>" in text
    assert "<h2>Billing</h2>" in text


def test_a_bank_with_a_private_text_does_not_show_it(staff, entry, remember, project, owner):
    chat = Session.objects.create(
        project=project, creator=owner, visibility=Visibility.PRIVATE, title="Secret"
    )
    private = remember("- Nobody knows", chat)
    text = ask(staff(*MAY_ACT), "hide", [private])
    assert "(private)" in text
    assert "Nobody knows" not in text
