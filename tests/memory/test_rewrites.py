"""Edits and deletions make a summary stale, and it is rewritten."""

from datetime import UTC, datetime, timedelta

import pytest

from chat.conversations import edits
from chat.conversations.generation import SERVER_STOPPED, finalise
from chat.conversations.messages import ask, begin_reply, draft, post_messages
from chat.conversations.sessions import update_session
from chat.models import Session, Status
from memory import leases
from memory.layers import conversations, cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.conversations import EDIT_REPLACED, summarise
from memory.layers.coverage import messages_of
from memory.layers.statistics import particulars_by_layer
from memory.models import Activity, ActivityVerb, Cursor, Entry, EntryRevision, EntryStatus
from memory.moderation import entry_operations

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner):
    return Session.objects.create(project=project, creator=owner, title="Cutover")


def later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def summarised_messages(session, owner):
    """Three messages and the extractive entry that quotes them."""
    texts = ("The cutover is on 3 March.", "The platform team owns it.", "Budget: 900 euros.")
    messages = post_messages(session, [draft(text, author=owner) for text in texts])
    summarise(session.pk, later())
    return messages


def test_an_edit_makes_the_same_entry_stale_and_due_and_keeps_the_text_before(
    summarised_messages, owner, project
):
    entry = Entry.objects.get()
    edits.edit(summarised_messages[0], "The cutover is on 4 April.", owner)
    entry.refresh_from_db()
    assert (entry.state, entry.withheld) == (EntryStatus.STALE, False)
    assert "3 March" in rendered_bank(project).text
    assert "edited since" in rendered_bank(project).text
    assert cycle.due(later()).entries == [entry.pk]

    cycle.run(later())
    entry.refresh_from_db()
    assert (entry.state, entry.revision, entry.first_seq, entry.last_seq) == (
        EntryStatus.LIVE,
        2,
        1,
        3,
    )
    assert "4 April" in entry.summary
    assert "3 March" not in entry.summary
    assert EntryRevision.objects.get(entry=entry).summary.count("3 March") == 1
    assert cycle.due(later()).entries == []
    assert Entry.objects.count() == 1


def test_deleted_text_is_withheld_at_once_and_leaves_no_revision(
    summarised_messages, owner, project
):
    edits.edit(summarised_messages[0], "The cutover is on 4 April.", owner)
    cycle.run(later())
    edits.delete(summarised_messages[2])
    assert rendered_bank(project).text == ""
    assert EntryRevision.objects.count() == 0
    cycle.run(later())
    entry = Entry.objects.get()
    assert (entry.state, entry.withheld) == (EntryStatus.LIVE, False)
    assert "4 April" in rendered_bank(project).text
    assert "900" not in entry.summary
    assert EntryRevision.objects.count() == 0


def test_an_entry_of_which_everything_was_deleted_goes(summarised_messages, session, project):
    edits.clear(session)
    assert rendered_bank(project).text == ""
    cycle.run(later())
    assert Entry.objects.count() == 0
    cursor = Cursor.objects.get(pk=session.pk)
    assert (cursor.summarised_through, cursor.unsummarised_messages) == (3, 0)


@pytest.fixture
def delete_after_claim(monkeypatch):
    """Gives a function: what it is given is deleted by somebody else as soon as it is claimed."""
    claim = leases.claim

    def deleting(rows):
        def late(among, pk):
            lease = claim(among, pk)
            rows.delete()
            return lease

        monkeypatch.setattr(leases, "claim", late)

    return deleting


def test_an_entry_that_goes_before_it_is_rewritten_holds_nobody_up(
    summarised_messages, session, owner, delete_after_claim
):
    entry = Entry.objects.get()
    edits.edit(summarised_messages[0], "The cutover is on 4 April.", owner)
    delete_after_claim(Entry.objects.all())
    assert conversations.rewrite(entry.pk, later()) is None
    cursor = Cursor.objects.get(pk=session.pk)
    assert (cursor.lease_holder, cursor.failures, cursor.next_try_at) == (None, 0, None)


def test_a_session_that_goes_before_it_is_summarised_is_no_failure(
    session, owner, delete_after_claim, caplog
):
    post_messages(session, [draft("The cutover is on 3 March.", author=owner)])
    delete_after_claim(Session.objects.all())
    assert summarise(session.pk, later()) is None
    assert "memory_failed" not in caplog.text


def test_another_reply_on_the_path_rewrites_what_covered_the_one_before(session, owner, scripted):
    [question] = post_messages(session, [draft("When is the cutover?", author=owner)])
    first = begin_reply(question)
    finalise(first, "On 3 March.", Status.COMPLETE, {})
    summarise(session.pk, later())
    _, second_reply = edits.regenerate(first)
    finalise(second_reply, "On 4 April.", Status.COMPLETE, {})
    [entry] = Entry.objects.all()
    assert entry.state == EntryStatus.STALE
    scripted.reset()
    conversations.rewrite(entry.pk, later())
    content = scripted.requests[-1]["messages"][-1]["content"]
    assert "When is the cutover?" in content
    assert "3 March" not in content


def test_a_discarded_reply_is_no_source_of_the_summary(session, owner, project, client, scripted):
    [question] = post_messages(session, [draft("When is the cutover?", author=owner)])
    first = begin_reply(question)
    finalise(first, "Ana Weber moved it to 3 March.", Status.COMPLETE, {})
    _, second_reply = edits.regenerate(first)
    finalise(second_reply, "On 4 April.", Status.COMPLETE, {})
    summarise(session.pk, later())
    [entry] = Entry.objects.all()
    assert list(messages_of(entry)) == [question, second_reply]
    client.force_login(owner)
    page = client.get(f"/projects/{project.slug}/memory/{entry.pk}/").content.decode()
    assert "On 4 April." in page
    assert "Ana Weber" not in page
    assert particulars_by_layer(project)["conversation"].held["names"] == 0


def test_a_reply_that_is_stored_completely_after_all_rewrites_its_summary(session, owner, scripted):
    _, reply = ask(session, "When is the cutover?", owner)
    finalise(reply, "It is", Status.INTERRUPTED, {"error": SERVER_STOPPED})
    scripted.say("- The cutover was asked about.")
    entry = summarise(session.pk, later())
    finalise(reply, "It is on 3 March.", Status.COMPLETE, {"error": ""})
    entry.refresh_from_db()
    assert entry.state == EntryStatus.STALE
    assert Cursor.objects.get().unsummarised_messages == 0
    scripted.say("- The cutover is on 3 March.")
    cycle.run(later())
    assert Entry.objects.get().summary == "- The cutover is on 3 March."
    assert "on 3 March" in str(scripted.requests[-1])


def test_a_change_while_an_entry_is_rewritten_is_not_lost(summarised_messages, owner, scripted):
    edits.edit(summarised_messages[0], "The cutover is on 4 April.", owner)
    entry = Entry.objects.get()

    def answer_after_edit(request):
        edits.edit(summarised_messages[0], "The cutover is on 5 May.", owner)
        return "- On 4 April."

    scripted.queue(answer_after_edit)
    assert conversations.rewrite(entry.pk, later()) is None
    assert cycle.due(later()).entries == [entry.pk]


def test_a_fork_is_not_remembered_twice(summarised_messages, owner):
    fork = edits.fork(summarised_messages[1], owner)
    assert fork.messages.count() == 2
    assert cycle.due(later()).sessions == []
    post_messages(fork, [draft("The fork goes on to Oslo.", author=owner)])
    entry = summarise(fork.pk, later())
    assert entry.message_count == 1
    assert "3 March" not in entry.summary


def test_the_digest_above_follows_an_edit(project, owner):
    project.bank_max_tokens = 150
    project.save()
    start = datetime(2026, 1, 5, 9, tzinfo=UTC)
    sessions = []
    for hour in range(8):
        at = start + timedelta(hours=hour)
        session = Session.objects.create(
            project=project, creator=owner, title=f"{hour}", created_at=at, last_activity_at=at
        )
        text = f"Release {hour} of the ledger takes {hour * 7 + 3} minutes in Oslo."
        post_messages(session, [draft(text, author=owner, created_at=at)])
        sessions.append(session)
    now = start + timedelta(days=3)
    cycle.run(now)
    day = Entry.objects.get(granularity="day")
    quoted = next(s for s in sessions if f"Release {s.title} " in day.summary)
    edits.delete(quoted.messages.get())
    day.refresh_from_db()
    assert (day.state, day.withheld) == (EntryStatus.STALE, True)
    bank = rendered_bank(project).text
    assert f"Release {quoted.title} " not in bank
    assert "Release" in bank
    cycle.run(datetime.now(UTC) + timedelta(hours=1))
    day.refresh_from_db()
    assert day.withheld is False
    assert f"Release {quoted.title} " not in day.summary
    assert day.children.count() == 7


def test_quotes_of_a_chat_that_was_made_private_go_back_to_review(
    summarised_messages, session, project
):
    assert "3 March" in rendered_bank(project).text
    update_session(session, visibility="private")
    assert rendered_bank(project).text == ""
    assert Entry.objects.get().state == EntryStatus.PROPOSED


def test_the_activity_shows_that_a_rewrite_replaced_an_edit_by_hand(
    summarised_messages, owner, client
):
    entry_operations.edit(Entry.objects.get(), "- The cutover is in spring.", owner)
    for day, expected in ((4, EDIT_REPLACED), (5, "")):
        edits.edit(summarised_messages[0], f"The cutover is on {day} April.", owner)
        cycle.run(later())
        act = Activity.objects.filter(verb=ActivityVerb.REWRITTEN).latest("pk")
        assert act.reason == expected
    client.force_login(owner)
    for path in ("activity/", f"{Entry.objects.get().pk}/"):
        assert client.get(f"/projects/billing/memory/{path}").text.count(EDIT_REPLACED) == 1
    assert EntryRevision.objects.filter(summary="- The cutover is in spring.").exists()
