"""A stretch of a conversation becomes one entry, once, whatever dies."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from chat.conversations import edits
from chat.conversations.generation import finalise
from chat.conversations.messages import (
    NewBranch,
    begin_reply,
    draft,
    post_message,
    post_messages,
)
from chat.models import Message, Session, Status
from memory import leases
from memory.layers import conversations, coverage, cycle
from memory.layers.conversations import summarise
from memory.models import Cursor, Entry, EntryStatus

pytestmark = pytest.mark.django_db(transaction=True)

LATER = timedelta(hours=1)


@pytest.fixture
def session(project, owner):
    return Session.objects.create(project=project, creator=owner, title="Cutover")


def later() -> datetime:
    return datetime.now(UTC) + LATER


def say(session, *texts: str) -> list[Message]:
    return post_messages(session, [draft(text) for text in texts])


def requested_text(model) -> str:
    return "\n".join(
        message["content"] for request in model.requests for message in request["messages"]
    )


def test_an_idle_session_is_due_and_a_fresh_one_is_not(session):
    say(session, "The cutover is on 3 March.")
    assert cycle.due(datetime.now(UTC)).sessions == []
    assert cycle.due(datetime.now(UTC) + timedelta(minutes=11)).sessions == [session.pk]


def test_a_session_that_never_falls_idle_is_due_when_it_is_full(session):
    say(session, *["word " * 1_000 for _ in range(5)])
    assert cycle.due(datetime.now(UTC)).sessions == [session.pk]


def test_a_fork_of_a_very_long_chat_is_summarised(session, owner, monkeypatch):
    monkeypatch.setattr(coverage, "MAX_RANGE_TOKENS", 50)
    last = say(session, *["word " * 30 for _ in range(5)])[-1]
    fork = edits.fork(last, owner)
    say(fork, "The cutover is on 3 March.")
    entry = summarise(fork.pk, later())
    assert entry is not None and (entry.first_seq, entry.last_seq) == (1, 6)
    ranges = [coverage.read_range(session, 0)]
    while ranges[-1].last_seq < 5:
        ranges.append(coverage.read_range(session, ranges[-1].last_seq))
    assert [len(one.contributing) for one in ranges] == [1, 1, 1, 1, 1]


def test_a_range_does_not_depend_on_how_many_messages_are_read_at_once(
    session, monkeypatch, django_assert_num_queries
):
    say(session, *["word " * 30 for _ in range(7)])
    monkeypatch.setattr(coverage, "MAX_RANGE_TOKENS", 100)
    whole, first = coverage.read_range(session, 0, 7), coverage.read_range(session, 0)
    assert (len(whole.contributing), len(first.contributing)) == (7, 3)
    monkeypatch.setattr(coverage, "PAGE_MESSAGES", 2)
    assert coverage.read_range(session, 0, 7) == whole
    # The path, and two pages: the texts of the other messages are not read.
    with django_assert_num_queries(3):
        assert coverage.read_range(session, 0) == first


def test_a_failure_after_the_lease_has_expired_is_retried_later(session):
    say(session, "The cutover is on 3 March.")
    lease = leases.claim(Cursor.objects.all(), session.pk)
    assert lease is not None
    Cursor.objects.update(lease_until=Now() - timedelta(minutes=1))
    lease.fail("The model did not answer in time.")
    cursor = Cursor.objects.get()
    assert (cursor.failures, cursor.lease_holder) == (1, None) and cursor.next_try_at
    other = leases.claim(Cursor.objects.all(), session.pk)
    assert other is not None
    lease.fail("Late.")
    assert Cursor.objects.get().lease_holder == other.holder


def test_finding_what_is_due_is_one_query(project, owner, django_assert_num_queries):
    for _ in range(5):
        say(Session.objects.create(project=project, creator=owner), "Something was said here.")
    with django_assert_num_queries(1):
        assert len(cycle.due(later()).sessions) == 5


def test_an_entry_covers_the_messages(session, scripted):
    scripted.say("- The cutover is on 3 March.")
    first, *_, last = say(session, "When is the cutover?", "On 3 March.", "Good.")
    entry = summarise(session.pk, later())
    assert entry.summary == "- The cutover is on 3 March."
    assert (entry.first_seq, entry.last_seq, entry.message_count) == (1, 3, 3)
    assert (entry.first_source_at, entry.last_source_at) == (first.created_at, last.created_at)
    assert entry.written_by == "openai-chat:scripted"
    cursor = Cursor.objects.get(pk=session.pk)
    assert (cursor.summarised_through, cursor.unsummarised_messages) == (3, 0)
    assert cursor.lease_holder is None


def test_nothing_new_means_no_call(session, scripted):
    scripted.say("- Said once.")
    say(session, "Something was said here.")
    assert summarise(session.pk, later())
    assert summarise(session.pk, later()) is None
    assert summarise(session.pk, later(), force=True) is None
    assert len(scripted.requests) == 1


def test_all_of_a_long_conversation_is_read_and_a_resumed_one_gets_a_second_entry(
    session, scripted, settings
):
    settings.CONTEXT_TOKENS = 4_000
    facts = [
        f"Fact {n}: part P-{1000 + n} weighs {n} grams. " + "And so on. " * 30 for n in range(120)
    ]
    say(session, *facts)
    first = summarise(session.pk, later())
    assert (first.first_seq, first.last_seq, first.message_count) == (1, 120, 120)
    assert set(re.findall(r"P-\d{4}", requested_text(scripted))) == {
        f"P-{1000 + n}" for n in range(120)
    }

    scripted.reset()
    say(session, *[f"Later fact {n}: part Q-{n}." for n in range(10)])
    second = summarise(session.pk, later())
    assert (second.first_seq, second.last_seq, second.message_count) == (121, 130, 10)
    assert "P-1005" not in requested_text(scripted)
    assert [(e.first_seq, e.last_seq) for e in session.entries.order_by("first_seq")] == [
        (1, 120),
        (121, 130),
    ]


def test_a_range_stops_before_an_unfinished_reply(session, scripted):
    question = post_message(session, "What about the replica?")
    reply = begin_reply(question)
    entry = summarise(session.pk, later())
    assert (entry.first_seq, entry.last_seq) == (1, 1)

    finalise(reply, "The replica stays for a week.", Status.COMPLETE, {})
    entry = summarise(session.pk, later())
    assert (entry.first_seq, entry.last_seq, entry.message_count) == (2, 2, 1)


def test_failed_replies_and_siblings_off_the_path_contribute_nothing(session, scripted):
    question = post_message(session, "What about the replica?")
    finalise(begin_reply(question), "An earlier answer.", Status.COMPLETE, {})
    finalise(begin_reply(question), "", Status.FAILED, {"error": "No."})
    finalise(begin_reply(question), "The answer that counts.", Status.COMPLETE, {})
    entry = summarise(session.pk, later())
    assert (entry.first_seq, entry.last_seq, entry.message_count) == (1, 4, 2)
    assert "The answer that counts." in requested_text(scripted)
    assert "An earlier answer." not in requested_text(scripted)


def test_an_unremembered_chat_is_not_summarised(session, scripted):
    session.remembered = False
    session.save()
    say(session, "My secret is the number nine.")
    assert cycle.due(later()).sessions == []
    session.remembered = True
    session.save()
    say(session, "The cutover is on 3 March.")
    entry = summarise(session.pk, later())
    assert (entry.first_seq, entry.last_seq, entry.message_count) == (1, 2, 1)
    assert "secret" not in requested_text(scripted)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (lambda model: model.status(500), "returned an error"),
        (lambda model: model.status(429, retry_after=7), "limiting requests"),
        (lambda model: model.nothing(), "an empty reply"),
        (lambda model: model.hang(), "in time"),
    ],
)
def test_a_failure_invents_nothing_and_stays_due(session, scripted, settings, trouble, reason):
    settings.MODEL_TIMEOUT = 1
    trouble(scripted)
    say(session, "The cutover is on 3 March.")
    assert summarise(session.pk, later()) is None
    assert Entry.objects.count() == 0
    cursor = Cursor.objects.get(pk=session.pk)
    assert cursor.unsummarised_messages == 1
    assert cursor.failures == 1
    assert reason in cursor.last_error
    assert cursor.next_try_at > datetime.now(UTC)
    assert cycle.due(later()).sessions == []

    Cursor.objects.update(next_try_at=Now())
    settings.MODEL_TIMEOUT = 60
    scripted.say("- The cutover is on 3 March.")
    assert summarise(session.pk, later())
    cursor.refresh_from_db()
    assert (cursor.failures, cursor.last_error, cursor.next_try_at) == (0, "", None)


def test_waits_grow_and_have_a_ceiling(session):
    say(session, "The cutover is on 3 March.")
    waits = []
    for _ in range(12):
        Cursor.objects.update(next_try_at=None)
        leases.claim(Cursor.objects.all(), session.pk).fail("It did not work.")
        waits.append(Cursor.objects.get().next_try_at - datetime.now(UTC))
    assert waits[0] < timedelta(minutes=1) < waits[1] < waits[5]
    assert timedelta(hours=5, minutes=59) < waits[-1] <= timedelta(hours=6)


def test_only_one_worker_holds_a_session(session, scripted):
    say(session, "The cutover is on 3 March.")
    lease = leases.claim(Cursor.objects.all(), session.pk)
    assert leases.claim(Cursor.objects.all(), session.pk) is None
    assert summarise(session.pk, later()) is None
    lease.release()
    assert summarise(session.pk, later())


def test_a_worker_that_was_overtaken_commits_nothing(session, scripted):
    say(session, "The cutover is on 3 March.")

    def overtaken(request):
        Cursor.objects.update(lease_until=Now() - timedelta(seconds=1))
        return "- Too late."

    scripted.queue(overtaken)
    assert summarise(session.pk, later()) is None
    assert Entry.objects.count() == 0


def test_a_database_that_went_away_is_no_failure_and_holds_nothing_up(session, scripted):
    say(session, "The cutover is on 3 March.")

    def cut_off(request):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        return "- The cutover is on 3 March."

    scripted.queue(cut_off)
    assert summarise(session.pk, later()) is None
    cursor = Cursor.objects.get()
    assert (cursor.lease_holder, cursor.failures, cursor.next_try_at) == (None, 0, None)
    scripted.say("- The cutover is on 3 March.")
    assert summarise(session.pk, later())


def test_a_summary_of_sources_that_changed_meanwhile_is_not_kept(session, scripted):
    [message] = say(session, "The cutover is on 3 March.")

    def edited(request):
        Message.objects.filter(pk=message.pk).update(version=2, text="It is on 4 March.")
        return "- The cutover is on 3 March."

    scripted.queue(edited)
    assert summarise(session.pk, later()) is None
    assert Entry.objects.count() == 0
    assert cycle.due(later()).sessions == [session.pk]


def test_a_branch_that_is_chosen_while_it_is_skipped_stays_due(session, monkeypatch):
    first = say(session, "The cutover is on 3 March.")[0]
    post_messages(session, [draft("")], at=NewBranch(None))
    skip = conversations.SummaryJob.skip

    def skip_late(job: conversations.SummaryJob) -> None:
        edits.choose(first)
        skip(job)

    monkeypatch.setattr(conversations.SummaryJob, "skip", skip_late)
    assert summarise(session.pk, later()) is None
    assert cycle.due(later()).sessions == [session.pk]
    assert Entry.objects.count() == 0


def test_messages_sent_meanwhile_wait_for_the_next_entry(session, scripted):
    say(session, "The cutover is on 3 March.")

    def more(request):
        say(session, "And one more thing.")
        return "- The cutover is on 3 March."

    scripted.queue(more)
    entry = summarise(session.pk, later())
    assert entry.last_seq == 1
    assert Cursor.objects.get(pk=session.pk).unsummarised_messages == 1


def test_new_memories_wait_where_they_are_reviewed(session, project, scripted):
    project.review_memories = True
    project.save()
    say(session, "The cutover is on 3 March.")
    assert summarise(session.pk, later()).state == EntryStatus.PROPOSED


def test_quotes_from_a_private_session_wait(session):
    session.visibility = "private"
    session.save()
    say(session, "The cutover is on 3 March and the platform team owns it.")
    entry = summarise(session.pk, later())
    assert entry.written_by == "extractive"
    assert entry.state == EntryStatus.PROPOSED


def test_the_extractive_summariser_quotes(session):
    say(session, "The cutover is on 3 March and the platform team owns it.")
    entry = summarise(session.pk, later())
    assert "3 March" in entry.summary
    assert entry.state == EntryStatus.LIVE


def test_a_project_that_does_not_remember_has_nothing_due(session, project):
    say(session, "The cutover is on 3 March.")
    project.memory_enabled = False
    project.save()
    assert cycle.due(later()).sessions == []
    assert summarise(session.pk, later(), force=True) is None
