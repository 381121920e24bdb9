"""The queue, and the page between a choice and the deed."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.models import Session, Visibility
from memory.models import Activity, ActivityVerb, Entry, EntryStatus
from tests.html import compact

pytestmark = pytest.mark.django_db

REVIEW = "/projects/billing/memory/review/"
ACT = "/projects/billing/memory/act/"
NOBODYS = "0190163d-8694-739b-aea5-966c26f8ad91"


@pytest.fixture
def waiting(remember, project, editor):
    """Makes so many summaries that wait for review, each of its own chat."""

    def make(count: int = 3, **fields) -> list[Entry]:
        entries = []
        for number in range(count):
            chat = Session.objects.create(project=project, creator=editor)
            usual = {"state": EntryStatus.PROPOSED, "waits_because": "asked"}
            entries.append(remember(f"- Point {number} of review", chat, **usual | fields))
        return entries

    return make


def listed(client, user, query: str = "") -> str:
    client.force_login(user)
    response = client.get(REVIEW + query)
    assert response.status_code == 200
    return response.content.decode()


def listed_ids(client, user, query: str = "") -> set[str]:
    text = listed(client, user, query)
    return {str(pk) for pk in Entry.objects.values_list("pk", flat=True) if f"pick-{pk}" in text}


def ask(client, user, **fields):
    client.force_login(user)
    return client.post(ACT, fields, follow=True)


def states() -> list[str]:
    return sorted(Entry.objects.values_list("state", flat=True))


def test_proposed_entries_come_first_with_counts_and_reasons(client, owner, entry, waiting):
    waiting(2)
    waiting(1, waits_because="instructions")
    text = compact(listed(client, owner))
    assert "Needs review<span>3</span>" in text
    assert "In use<span>1</span>" in text
    assert "Contains instructions to a model</span>" in text
    assert str(entry.pk) not in text
    # No tab for a state that no memory has.
    assert "Waiting to be rewritten" not in text


def test_an_empty_queue_explains_what_comes_there(client, owner, editor, project, entry):
    text = listed(client, owner)
    assert "Nothing to review" in text
    assert "memories that quote a private chat" in text
    assert "Review every new memory" in text
    project.review_memories = True
    project.save()
    text = listed(client, editor)
    assert "Each new memory waits here until somebody approves it." in text
    # The link leads to a setting that only owners change.
    assert "Use new memories without review" not in text
    assert "Use new memories without review" in listed(client, owner)


def test_filters_without_a_match_are_no_empty_queue(client, owner, entry):
    text = listed(client, owner, "?state=proposed&q=replica")
    assert "No memories match." in text
    assert "Nothing to review" not in text


def test_active_filters_are_listed_with_a_link_that_removes_them(client, owner, entry):
    text = compact(listed(client, owner, "?state=live&layer=day&since=2026-03-01&page=2"))
    filters = text.partition('class="active-filters"')[2].partition("</ul>")[0]
    assert 'From: 1 Mar 2026<a href="?state=live&amp;layer=day"' in filters
    assert 'Layer: Days<a href="?state=live&amp;since=2026-03-01"' in filters
    assert 'class="active-filters"' not in listed(client, owner, "?state=live")


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("?state=proposed", 3),
        ("?state=live", 1),
        ("?state=", 4),
        ("?state=&layer=conversation", 4),
        ("?state=&layer=day", 0),
        ("?state=proposed&because=private", 0),
        ("?state=&q=replica", 1),
        ("?state=&q=replica+point", 0),
        ("?state=&since=2026-03-12&until=2026-03-12", 4),
        ("?state=&since=2026-03-13", 0),
        ("?state=&until=2026-03-11", 0),
    ],
)
def test_it_is_filtered(client, owner, entry, waiting, query, count):
    waiting(3)
    assert len(listed_ids(client, owner, query)) == count


def test_a_day_is_one_of_the_projects_zone(client, owner, entry, project):
    # 10:00 in London is the next day on Kiritimati.
    project.timezone = "Pacific/Kiritimati"
    project.save()
    assert listed_ids(client, owner, "?state=&since=2026-03-13") == {str(entry.pk)}


def test_words_of_a_withheld_text_find_nothing(client, owner, entry):
    Entry.objects.update(withheld=True)
    assert listed_ids(client, owner, "?state=&q=replica") == set()


@pytest.mark.parametrize("query", ["?since=yesterday", "?state=wild"])
def test_a_bad_filter_says_so(client, owner, entry, query):
    client.force_login(owner)
    response = client.get(REVIEW + query)
    assert response.status_code == 400
    assert 'class="error"' in response.content.decode()


def test_the_list_takes_the_same_queries_however_much_there_is(client, owner, waiting):
    client.force_login(owner)
    waiting(2)
    client.get(REVIEW)
    with CaptureQueriesContext(connection) as few:
        client.get(REVIEW)
    waiting(20)
    with CaptureQueriesContext(connection) as many:
        client.get(REVIEW)
    assert len(many) == len(few) <= 12


def test_a_viewer_reads_and_is_offered_nothing(client, viewer, waiting):
    waiting(1)
    text = listed(client, viewer)
    assert "Point 0" in text
    assert 'type="checkbox"' not in text
    assert "memory/act/" not in text


def test_editors_are_not_offered_to_forget(client, editor, owner, waiting):
    waiting(1)
    assert 'value="forget"' not in listed(client, editor)
    assert 'value="forget"' in listed(client, owner)


def test_strangers_get_404(client, stranger, project):
    client.force_login(stranger)
    assert client.get(REVIEW).status_code == 404
    assert client.post(ACT, {"action": "hide"}).status_code == 404


def test_proposals_from_anothers_private_chat_are_not_listed(client, owner, editor, waiting):
    [secret] = waiting(1)
    Session.objects.filter(pk=secret.session_id).update(visibility=Visibility.PRIVATE)
    assert str(secret.pk) not in listed(client, owner)
    assert str(secret.pk) in listed(client, editor)
    assert ask(client, owner, entries=secret.pk, action="approve").status_code == 404


def test_a_preview_shows_the_changes_first(client, owner, entry, day):
    text = ask(client, owner, entries=entry.pk, action="hide").content.decode()
    assert "<b>1 later summary</b>will be rewritten." in compact(text)
    assert "Text sent to the model, before and after" in text
    assert "<del>- 12 Mar: A day about the replica</del>" in " ".join(text.split())
    assert 'name="confirmed"' in text
    assert Entry.objects.get(pk=entry.pk).state == EntryStatus.ABSORBED


def test_then_it_is_done_with_the_reason(client, owner, entry, day):
    fields = {"entries": entry.pk, "action": "hide", "reason": "duplicate", "confirmed": "yes"}
    assert "Hidden: 1." in ask(client, owner, **fields).content.decode()
    assert Entry.objects.get(pk=entry.pk).state == EntryStatus.HIDDEN
    assert Activity.objects.get(verb=ActivityVerb.HIDDEN).reason == "duplicate"


def test_without_a_reason_of_ours_nothing_is_done(client, owner, entry):
    fields = {"entries": entry.pk, "action": "hide", "reason": "whim", "confirmed": "yes"}
    assert ask(client, owner, **fields).status_code == 400
    assert Entry.objects.get(pk=entry.pk).state == EntryStatus.LIVE


def test_many_are_done_at_once_and_refusals_are_reported(client, owner, entry, waiting):
    chosen = [entry.pk, *(cursor.pk for cursor in waiting(3))]
    text = ask(client, owner, entries=chosen, action="approve").content.decode()
    assert "1 memory will not be changed:" in text
    assert "Someone else has already decided this." in text
    fields = {"entries": chosen, "action": "approve", "reason": "checked", "confirmed": "yes"}
    response = ask(client, owner, **fields, back=f"{REVIEW}?state=live")
    assert response.redirect_chain == [(f"{REVIEW}?state=live", 302)]
    text = response.content.decode()
    assert "Approved: 3." in text
    assert "Someone else has already decided this." in text
    assert states() == ["live"] * 4


def test_one_of_a_list_is_decided_by_its_own_button(client, owner, waiting):
    first_item, other, _ = waiting(3)
    fields = {"decision": f"reject {first_item.pk}", "entries": [other.pk], "action": "pin"}
    text = ask(client, owner, **fields).content.decode()
    assert f'name="entries" value="{first_item.pk}"' in text
    assert str(other.pk) not in text


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"action": "approve"}, "Nothing is selected."),
        ({"action": "approve", "entries": "x"}, "Nothing is selected."),
        ({"action": "burn", "entries": [NOBODYS, NOBODYS]}, "This action does not exist."),
        ({"action": "edit", "entries": [NOBODYS, NOBODYS]}, "Select a single memory"),
        ({"action": "hide", "entries": [NOBODYS] * 201}, "Select at most 200"),
    ],
)
def test_an_invalid_filter_shows_an_error(client, owner, project, fields, complaint):
    assert complaint in ask(client, owner, **fields).content.decode()


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example", "x"])
def test_it_leads_back_to_pages_of_ours_only(client, owner, entry, back):
    fields = {"entries": entry.pk, "action": "pin", "reason": "other", "confirmed": "yes"}
    response = ask(client, owner, **fields, back=back)
    assert response.redirect_chain == [(f"/projects/billing/memory/{entry.pk}/", 302)]


def test_an_edit_is_shown_beside_the_text_of_now_first(client, editor, entry):
    fields = {"entries": entry.pk, "action": "edit", "text": "- The replica stays <b>ten</b> days"}
    text = ask(client, editor, **fields, revision=1).content.decode()
    assert "<del>seven </del>" in text
    assert "<ins>&lt;b&gt;ten&lt;/b&gt; </ins>" in text
    assert Entry.objects.get(pk=entry.pk).summary == "- The replica stays seven days"


def test_an_overtaken_editor_keeps_their_text_and_sees_the_current_one(client, editor, entry):
    sent = {"entries": entry.pk, "action": "edit", "reason": "wrong", "confirmed": "yes"}
    ask(client, editor, **sent, text="- Theirs", revision=1)
    response = ask(client, editor, **sent, text="- Mine", revision=1)
    assert response.status_code == 400
    text = response.content.decode()
    assert "changed this text while you were editing" in text
    assert "<del>- Theirs</del>" in text or "Theirs" in text
    assert "- Mine</textarea>" in text
    assert 'name="revision" value="2"' in text
    ask(client, editor, **sent, text="- Mine", revision=2)
    assert Entry.objects.get(pk=entry.pk).summary == "- Mine"


def test_words_are_redacted_by_an_owner(client, owner, editor, entry):
    sent = {"entries": entry.pk, "action": "redact", "text": "seven", "reason": "private"}
    text = ask(client, editor, **sent, confirmed="yes").content.decode()
    assert "Only owners can forget this." in text
    assert 'name="text"' in ask(client, owner, entries=entry.pk, action="redact").content.decode()
    ask(client, owner, **sent, confirmed="yes")
    assert Entry.objects.get(pk=entry.pk).summary == "- The replica stays […] days"


def test_words_that_are_not_there_are_refused_and_kept(client, owner, entry):
    sent = {"entries": entry.pk, "action": "redact", "text": "eleven", "reason": "private"}
    response = ask(client, owner, **sent)
    assert response.status_code == 400
    assert "does not contain these words" in response.content.decode()
    assert "eleven" in response.content.decode()


def test_many_are_forgotten_at_once_each_with_a_receipt(client, owner, entry, waiting):
    chosen = [entry.pk, waiting(1)[0].pk]
    text = ask(client, owner, entries=chosen, action="forget").content.decode()
    assert "<dt>2</dt><dd>memories</dd>" in text
    assert Entry.objects.count() == 2
    sent = {"entries": chosen, "action": "forget", "reason": "private", "confirmed": "yes"}
    response = ask(client, owner, **sent)
    assert not Entry.objects.exists()
    assert response.content.decode().count(">receipt</a>") == 2


def test_entries_that_do_not_exist_are_not_found(client, owner, entry):
    missing = [NOBODYS, NOBODYS.replace("0", "1")]
    assert ask(client, owner, entries=missing, action="hide").status_code == 404


def test_an_entry_that_is_named_twice_is_changed_once(client, owner, entry):
    text = ask(client, owner, entries=[entry.pk, entry.pk], action="hide").content.decode()
    assert "no longer exist" not in text


def test_every_act_without_a_script_style_or_handler(client, owner, entry, waiting):
    chosen = [entry.pk, waiting(1)[0].pk]
    for text in (
        listed(client, owner, "?state="),
        ask(client, owner, entries=chosen, action="hide").content.decode(),
    ):
        assert " style=" not in text
        assert " onclick=" not in text
        assert "<script>" not in text


def test_the_second_page_of_the_queue_is_that_of_the_queue(client, owner, waiting, monkeypatch):
    monkeypatch.setattr("memory.views.review.PAGE_SIZE", 2)
    proposed = {str(entry.pk) for entry in waiting(3)}
    waiting(2, state=EntryStatus.LIVE, waits_because="")
    pages = [listed_ids(client, owner, f"?page={number}") for number in (1, 2)]
    assert [len(page) for page in pages] == [2, 1]
    assert set.union(*pages) == proposed


def test_the_form_of_an_edit_does_not_show_a_withheld_text(
    client, owner, editor, project, remember
):
    chat = Session.objects.create(project=project, creator=owner, visibility=Visibility.PRIVATE)
    rejected = remember("- The vault code is 4711", chat, state=EntryStatus.HIDDEN, withheld=True)
    for fields in ({}, {"text": "- A guess"}):
        response = ask(client, editor, action="edit", entries=rejected.pk, **fields)
        assert "4711" not in response.content.decode()
    assert "This text cannot be edited right now." in response.content.decode()
