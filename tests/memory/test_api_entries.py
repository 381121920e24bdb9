"""/api/v1/projects/{slug}/memory/entries/: the nodes of the layers, and changing them."""

from datetime import UTC, datetime, timedelta

import pytest

from chat.models import Session, Visibility
from memory.layers.bank import item_tokens
from memory.models import Activity, Entry, EntryRevision, EntryStatus
from memory.models.entries import history_clock
from memory.moderation import entry_operations

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/memory/entries/"
NOBODYS = "0190163d-8694-739b-aea5-966c26f8ad91"


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def make(project):
    def entry(granularity: str = "day", summary: str = "It was decided.", **fields) -> Entry:
        keys = {"conversation": "2026-03-03", "day": "2026-03-03", "week": "2026-W10"}
        stored_entry = Entry.objects.create(
            project=project,
            granularity=granularity,
            summary=summary,
            **{
                "period_key": keys[granularity],
                "zone": "UTC",
                "message_count": 4,
                "first_source_at": "2026-03-03T09:00Z",
                "last_source_at": "2026-03-03T09:10Z",
                "written_by": "scripted",
                "tokens": 0,
                "sources_hash": "of its sources",
            }
            | fields,
        )
        stored_entry.refresh_from_db()
        stored_entry.tokens = item_tokens(stored_entry.as_item())
        stored_entry.save()
        return stored_entry

    return entry


@pytest.fixture
def leaf(make, session) -> Entry:
    return make("conversation", session=session, first_seq=1, last_seq=4)


@pytest.fixture
def week(make) -> Entry:
    return make("week")


@pytest.fixture
def day(make, week) -> Entry:
    return make("day", parent=week, state=EntryStatus.ABSORBED)


@pytest.fixture
def absorbed(make, session, day) -> Entry:
    return make(
        "conversation",
        session=session,
        first_seq=1,
        last_seq=4,
        parent=day,
        state=EntryStatus.ABSORBED,
    )


@pytest.fixture
def patch(api, owner):
    def run(entry: Entry, user=owner, **fields):
        return api(user).patch(f"{URL}{entry.pk}/", fields, format="json")

    return run


def state(entry: Entry) -> str:
    return Entry.objects.get(pk=entry.pk).state


def test_a_member_reads_an_entry_with_what_it_is_made_of(api, viewer, session, absorbed, day):
    payload = api(viewer).get(f"{URL}{absorbed.pk}/").json()
    assert payload["covers"] == {"session": str(session.pk), "first_seq": 1, "last_seq": 4}
    assert (payload["parent"], payload["children"]) == (str(day.pk), [])
    assert (payload["granularity"], payload["state"], payload["revision"]) == (
        "conversation",
        "absorbed",
        1,
    )
    above = api(viewer).get(f"{URL}{day.pk}/").json()
    assert (above["covers"], above["children"]) == (None, [str(absorbed.pk)])
    assert above["label"] == "Tue 3 Mar 2026"


def test_a_stranger_and_what_is_not_there_get_404(api, owner, stranger, leaf, patch):
    assert api(stranger).get(URL).status_code == 404
    assert api(stranger).get(f"{URL}{leaf.pk}/").status_code == 404
    assert patch(leaf, stranger, pinned=True).status_code == 404
    assert api(owner).get(f"{URL}{NOBODYS}/").status_code == 404


def test_entries_are_filtered(api, viewer, session, absorbed, day, week):
    def listed_ids(**query) -> list[str]:
        return [result["id"] for result in api(viewer).get(URL, query).json()["results"]]

    assert listed_ids() == [str(absorbed.pk), str(day.pk), str(week.pk)]
    assert listed_ids(granularity="day") == [str(day.pk)]
    assert listed_ids(state="live") == [str(week.pk)]
    assert listed_ids(session=session.pk) == [str(absorbed.pk)]
    assert listed_ids(session=NOBODYS) == []


@pytest.mark.parametrize("query", ["granularity=year", "state=lost", "session=none"])
def test_a_filter_that_makes_no_sense_is_refused_by_field(api, viewer, query):
    answer = api(viewer).get(f"{URL}?{query}")
    assert answer.status_code == 400
    assert list(answer.json()) == [query.split("=")[0]]


def test_listing_takes_the_same_queries_for_many(
    api, viewer, make, session, day, django_assert_num_queries
):
    for seq in range(1, 21):
        make("conversation", session=session, first_seq=seq, last_seq=seq, parent=day)
    client = api(viewer)
    with django_assert_num_queries(4):
        assert len(client.get(URL).json()["results"]) == 22


def test_a_private_session_is_not_named_to_others(api, owner, editor, session, leaf):
    Session.objects.update(visibility=Visibility.PRIVATE)
    mine = api(owner).get(URL, {"session": session.pk}).json()["results"]
    assert mine[0]["covers"]["session"] == str(session.pk)
    assert api(editor).get(URL).json()["results"][0]["covers"] is None
    assert api(editor).get(URL, {"session": session.pk}).json()["results"] == []


def test_an_entry_that_may_quote_a_private_session_is_its_creators(api, owner, editor, leaf):
    Session.objects.update(visibility=Visibility.PRIVATE)
    Entry.objects.update(state=EntryStatus.PROPOSED)
    assert len(api(owner).get(URL).json()["results"]) == 1
    assert api(editor).get(URL).json()["results"] == []
    assert api(editor).get(f"{URL}{leaf.pk}/").status_code == 404


@pytest.fixture
def past(make, session, owner):
    """Makes an entry that had another state until yesterday, when it was edited and became live."""

    def entry(state: EntryStatus, edited: str = "It was decided.", **fields) -> Entry:
        with history_clock(datetime.now(UTC) - timedelta(days=2)):
            fields = {"session": session, "first_seq": 1, "last_seq": 4, "state": state} | fields
            made = make("conversation", **fields)
        with history_clock(datetime.now(UTC) - timedelta(days=1)):
            if edited != made.summary:
                entry_operations.edit(made, edited, by=owner)
            Entry.objects.filter(pk=made.pk).update(state=EntryStatus.LIVE)
        return made

    return entry


@pytest.fixture
def as_of(api):
    """The status and the text of an entry some days ago."""

    def read(user, entry: Entry, days: float) -> tuple[int, str]:
        moment = datetime.now(UTC) - timedelta(days=days)
        answer = api(user).get(f"{URL}{entry.pk}/", {"as_of": moment.isoformat()})
        return answer.status_code, answer.json().get("summary", "")

    return read


@pytest.mark.parametrize("edited", ["It was decided.", "Nothing was said."])
def test_the_past_of_a_proposal_of_a_private_session_is_its_creators(
    as_of, owner, editor, viewer, past, edited
):
    entry = past(EntryStatus.PROPOSED, edited)
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert as_of(owner, entry, 1.5) == (200, "It was decided.")
    for other in (editor, viewer):
        assert as_of(other, entry, 1.5) == (404, "")
        assert as_of(other, entry, 0.5) == (200, edited)


def test_an_earlier_text_of_a_private_session_is_its_creators(as_of, owner, editor, past):
    entry = past(EntryStatus.LIVE, "Nothing was said.")
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert as_of(owner, entry, 1.5) == (200, "It was decided.")
    assert as_of(editor, entry, 1.5) == (404, "")


def test_the_past_of_a_shared_proposal_is_every_members(as_of, viewer, past):
    entry = past(EntryStatus.PROPOSED, "Nothing was said.")
    assert as_of(viewer, entry, 1.5) == (200, "It was decided.")


def test_the_creator_of_a_private_session_must_be_the_reader_even_for_an_owner(
    as_of, owner, editor, past
):
    entry = past(EntryStatus.PROPOSED, "Nothing was said.")
    Session.objects.update(visibility=Visibility.PRIVATE, creator=editor)
    assert as_of(owner, entry, 1.5) == (404, "")
    assert as_of(editor, entry, 1.5) == (200, "It was decided.")


def test_what_was_hidden_stays_hidden_from_viewers(as_of, editor, viewer, past):
    entry = past(EntryStatus.HIDDEN)
    assert as_of(editor, entry, 1.5) == (200, "It was decided.")
    assert as_of(viewer, entry, 1.5) == (404, "")
    assert as_of(viewer, entry, 0.5) == (200, "It was decided.")


def test_an_edit_keeps_the_text_before(patch, editor, leaf):
    answer = patch(leaf, editor, summary="It was decided on Tuesday, at last.")
    assert answer.status_code == 200
    payload = answer.json()
    assert (payload["summary"], payload["revision"]) == ("It was decided on Tuesday, at last.", 2)
    assert payload["written_by"] == "edgar"
    assert payload["tokens"] > leaf.tokens
    before = EntryRevision.objects.get(entry=leaf)
    assert (before.revision, before.summary) == (1, "It was decided.")
    assert before.written_by == "scripted"


def test_the_same_text_again_is_no_edit(patch, leaf):
    assert patch(leaf, summary="It was decided.").json()["revision"] == 1
    assert not EntryRevision.objects.exists()


def test_the_digest_above_an_edit_is_to_be_rewritten(patch, absorbed, day, week):
    patch(absorbed, summary="It was decided otherwise.")
    assert (state(absorbed), state(day), state(week)) == ("absorbed", "stale", "live")


def test_viewers_change_nothing(patch, viewer, leaf):
    for change in ({"summary": "Mine."}, {"pinned": True}, {"state": "hidden"}):
        assert patch(leaf, viewer, **change).status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"summary": ""}, "summary"),
        ({"summary": "x" * 5001}, "summary"),
        ({"state": "absorbed"}, "state"),
        ({"state": "nonsense"}, "state"),
        ({"pinned": "perhaps"}, "pinned"),
    ],
)
def test_an_invalid_entry_is_refused_by_field(patch, leaf, change, field):
    answer = patch(leaf, **change)
    assert answer.status_code == 400
    assert list(answer.json()) == [field]


def test_the_sources_of_an_entry_cannot_be_changed(patch, leaf):
    patch(leaf, revision=9, message_count=0, written_by="me")
    fresh = Entry.objects.get(pk=leaf.pk)
    assert (fresh.revision, fresh.message_count, fresh.written_by) == (1, 4, "scripted")


def test_a_pinned_entry_is_nobodys_child(patch, absorbed, day):
    payload = patch(absorbed, pinned=True).json()
    assert (payload["pinned"], payload["parent"], payload["state"]) == (True, None, "live")
    assert state(day) == "stale"
    assert patch(absorbed, pinned=False).json()["pinned"] is False


def test_pins_take_at_most_half_of_the_budget(patch, make, project, leaf):
    project.bank_max_tokens = 100
    project.save()
    assert patch(leaf, pinned=True).status_code == 200
    long = make("day", "Many words were said about it. " * 6)
    refused = patch(long, pinned=True)
    assert refused.status_code == 400
    assert "half of the budget" in refused.json()["pinned"][0]
    grown = patch(leaf, summary="Many words were said about it. " * 8)
    assert list(grown.json()) == ["summary"]
    leaf.refresh_from_db()
    assert (leaf.revision, leaf.pinned) == (1, True)


def test_a_change_that_fails_in_part_fails_as_a_whole(patch, leaf):
    answer = patch(leaf, summary="New.", state="hidden", pinned=True)
    assert list(answer.json()) == ["pinned"]
    leaf.refresh_from_db()
    assert (leaf.summary, leaf.state) == ("It was decided.", "live")
    assert not EntryRevision.objects.exists()


def test_hiding_withholds_every_digest_above(patch, absorbed, day, week):
    payload = patch(absorbed, state="hidden").json()
    assert (payload["state"], payload["parent"]) == ("hidden", None)
    assert (state(day), state(week)) == ("stale", "stale")
    assert not Entry.objects.filter(state=EntryStatus.STALE).exclude(withheld=True).exists()


def test_a_hidden_entry_can_be_shown_again(patch, leaf):
    patch(leaf, pinned=True)
    payload = patch(leaf, state="hidden").json()
    assert (payload["state"], payload["pinned"]) == ("hidden", False)
    assert patch(leaf, state="live").json()["state"] == "live"


def test_owners_alone_show_again_what_was_hidden(patch, editor, leaf):
    assert patch(leaf, editor, state="hidden").status_code == 200
    assert patch(leaf, editor, state="hidden").status_code == 200
    assert list(patch(leaf, editor, state="live").json()) == ["state"]
    assert patch(leaf, state="live").json()["state"] == "live"


def test_a_hidden_digest_stays_hidden_when_a_child_changes(patch, absorbed, day):
    patch(day, state="hidden")
    patch(absorbed, summary="It was decided otherwise.")
    assert state(day) == "hidden"
    assert patch(day, state="live").json()["state"] == "stale"


def test_an_owner_decides_on_what_waits_for_review(patch, editor, leaf):
    Entry.objects.update(state=EntryStatus.PROPOSED)
    refused = patch(leaf, editor, state="live")
    assert list(refused.json()) == ["state"]
    assert patch(leaf, state="live").json()["state"] == "live"


def test_the_creator_of_a_private_session_decides_on_its_proposals(patch, editor, session, leaf):
    Session.objects.update(visibility=Visibility.PRIVATE, creator=editor)
    Entry.objects.update(state=EntryStatus.PROPOSED)
    assert patch(leaf, state="live").status_code == 404
    assert patch(leaf, editor, state="live").json()["state"] == "live"


def test_a_proposal_that_its_creator_rejects_is_withheld(api, owner, patch, editor, leaf):
    Session.objects.update(visibility=Visibility.PRIVATE, creator=editor)
    Entry.objects.update(state=EntryStatus.PROPOSED)
    payload = patch(leaf, editor, state="hidden").json()
    assert (payload["state"], payload["withheld"], payload["summary"]) == ("hidden", True, "")
    assert api(owner).get(f"{URL}{leaf.pk}/").json()["summary"] == ""


def test_a_change_is_on_the_record_with_who_and_why(patch, owner, leaf):
    patch(leaf, pinned=True, reason="checked")
    patch(leaf, state="hidden")
    acts = Activity.objects.order_by("id").values_list("verb", "by", "reason")
    assert list(acts) == [("pinned", owner.pk, "checked"), ("hidden", owner.pk, "other")]


def test_a_reason_that_is_none_of_ours_is_refused(patch, leaf):
    assert patch(leaf, pinned=True, reason="whim").status_code == 400
    assert not Entry.objects.get(pk=leaf.pk).pinned


def test_losses_and_review_reasons_are_in_the_answer(api, owner, day):
    Entry.objects.filter(pk=day.pk).update(
        losses=[{"kind": "identifier", "text": "OPS-4419"}], particulars=7, waits_because="asked"
    )
    payload = api(owner).get(f"{URL}{day.pk}/").json()
    assert (payload["losses"], payload["particulars"]) == (
        [{"kind": "identifier", "text": "OPS-4419"}],
        7,
    )
    assert payload["waits_because"] == "asked"
    Entry.objects.filter(pk=day.pk).update(withheld=True)
    assert api(owner).get(f"{URL}{day.pk}/").json()["losses"] == []
