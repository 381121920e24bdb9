"""Growing replies are written once a second, together, and nobody waits for another."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from chat.conversations import generation
from chat.conversations.generation import finalise
from chat.conversations.messages import ask
from chat.models import Message, Session, Status
from projects.models import MemberRole, Membership, Project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def make_pending_replies(project, owner):
    """So many pending replies of the project, each in a chat of its own."""

    def make(number: int, project: Project = project) -> list[Message]:
        sessions = [Session.objects.create(project=project, creator=owner) for _ in range(number)]
        return [ask(session, "When?", owner)[1] for session in sessions]

    return make


def text_updates(*replies: Message, text: str = "On 3 March.") -> list:
    return [(reply.project_id, reply.pk, text) for reply in replies]


def stored_replies(*replies: Message) -> list[tuple[str, str]]:
    rows = Message.objects.in_bulk([reply.pk for reply in replies])
    return [(rows[reply.pk].text, rows[reply.pk].status) for reply in replies]


def test_those_of_a_project_are_written_by_one_statement(make_pending_replies, owner):
    other = Project.objects.create(name="Other", slug="other")
    Membership.objects.create(project=other, user=owner, role=MemberRole.OWNER)
    replies = [*make_pending_replies(3), *make_pending_replies(2, other)]
    before = [reply.heartbeat_at for reply in Message.objects.unfinished().order_by("pk")]
    with CaptureQueriesContext(connection) as queries:
        generation.flush(text_updates(*replies))
    assert len(queries) == 2
    assert stored_replies(*replies) == [("On 3 March.", "streaming")] * 5
    after = [reply.heartbeat_at for reply in Message.objects.unfinished().order_by("pk")]
    assert all(early < late for early, late in zip(before, after, strict=True))


def test_a_silent_one_shows_that_it_lives_and_stays_pending(make_pending_replies):
    [reply] = make_pending_replies(1)
    before = Message.objects.get(pk=reply.pk).heartbeat_at
    generation.flush(text_updates(reply, text=""))
    assert stored_replies(reply) == [("", "pending")]
    assert Message.objects.get(pk=reply.pk).heartbeat_at > before


def test_a_reply_finalised_meanwhile_is_left_unchanged(make_pending_replies):
    done, grows = make_pending_replies(2)
    finalise(done, "All of it.", Status.COMPLETE, {})
    generation.flush(text_updates(done, grows))
    assert stored_replies(done, grows) == [("All of it.", "complete"), ("On 3 March.", "streaming")]


def test_a_row_that_somebody_holds_is_not_waited_for(make_pending_replies):
    locked_reply, free = make_pending_replies(2)

    def write() -> None:
        try:
            generation.flush(text_updates(locked_reply, free))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Message.objects.select_for_update().get(pk=locked_reply.pk)
        pool.submit(write).result(timeout=30)
    assert stored_replies(locked_reply, free) == [("", "pending"), ("On 3 March.", "streaming")]
    generation.flush(text_updates(locked_reply))
    assert stored_replies(locked_reply) == [("On 3 March.", "streaming")]


def test_a_project_whose_write_fails_takes_no_other_along(make_pending_replies, caplog):
    [reply] = make_pending_replies(1)
    nowhere = (UUID(int=0), UUID(int=0), "What PostgreSQL refuses: \0")
    generation.flush([nowhere, *text_updates(reply)])
    assert stored_replies(reply) == [("On 3 March.", "streaming")]
    assert "flush_failed" in caplog.text


def test_all_that_grow_are_written_until_they_end(make_pending_replies, monkeypatch):
    monkeypatch.setattr(generation, "FLUSH_INTERVAL_S", 0.05)
    first, second = make_pending_replies(2)

    async def grow() -> None:
        words: list[str] = []
        with generation.flushing(second, ["Another."]):
            with generation.flushing(first, words):
                for word in ("On ", "3 ", "March."):
                    words.append(word)
                    await eventually(first, "".join(words))
            words.append(" And more.")
            await asyncio.sleep(0.2)
        assert not generation._unfinished
        assert not generation._flush_tasks

    async_to_sync(grow)()
    assert stored_replies(first, second) == [
        ("On 3 March.", "streaming"),
        ("Another.", "streaming"),
    ]


def test_no_failure_ends_the_writing(make_pending_replies, monkeypatch):
    monkeypatch.setattr(generation, "FLUSH_INTERVAL_S", 0.05)
    [reply] = make_pending_replies(1)
    write, failures = generation.flush, [RuntimeError("Nobody thought of this.")]

    def flush(text: list) -> None:
        if failures:
            raise failures.pop()
        write(text)

    monkeypatch.setattr(generation, "flush", flush)

    async def grow() -> None:
        with generation.flushing(reply, ["On 3 March."]):
            await eventually(reply, "On 3 March.")

    async_to_sync(grow)()
    assert failures == []


async def eventually(reply: Message, text: str) -> None:
    async with asyncio.timeout(30):
        while (await Message.objects.aget(pk=reply.pk)).text != text:
            await asyncio.sleep(0.02)
