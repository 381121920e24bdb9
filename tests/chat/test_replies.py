"""The one write path: what is posted stays, what is answered ends in a final status."""

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connection
from django.db.models.functions import Now

from chat.conversations import edits, generation, lookups
from chat.conversations.messages import (
    MAX_MESSAGE_CHARS,
    ask,
    begin_reply,
    draft,
    post_message,
    post_messages,
)
from chat.models import Call, Message, ModelPrice, Session, Status
from chat.providers import Delta
from chat.providers.base import MAX_CALL_TOKENS
from chat.signals import reply_stored
from chat.streaming import live_replies
from memory.forgetting.service import ForgetScope, forget
from projects.core.database import in_thread
from projects.models import Project
from tests.scripted import Answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner):
    return Session.objects.create(project=project, creator=owner)


async def _stream_events(reply):
    return [event async for event in generation.stream_reply(reply)]


def say(reply) -> list:
    return async_to_sync(_stream_events)(reply)


def test_a_reply_to_a_message_that_was_cut_has_a_note(session, owner, scripted, settings):
    settings.CONTEXT_TOKENS = 2_000
    for text, note in (("word " * 3_000, generation.MESSAGE_CUT), ("Short?", "")):
        scripted.say("Yes.")
        _, reply = ask(session, text, owner)
        say(reply)
        reply.refresh_from_db()
        assert reply.notice == note


def test_messages_take_their_places_in_order(session, owner):
    first = post_message(session, "One", author=owner)
    second = post_message(session, "Two", author=owner)
    assert (first.seq, second.seq, second.parent_id) == (1, 2, first.pk)
    session.refresh_from_db()
    assert (session.last_seq, session.version, session.head_id) == (2, 2, second.pk)


def test_writers_at_once_leave_no_gap_and_no_double(session):
    def write(name: str) -> None:
        for number in range(20):
            post_message(Session.objects.get(pk=session.pk), f"{name} {number}")
        connection.close()

    writers = [threading.Thread(target=write, args=(str(n),)) for n in range(5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    seqs = list(session.messages.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, 101))
    session.refresh_from_db()
    assert session.version == 100


def test_a_reply_arrives_in_pieces_and_is_kept(session, owner, scripted):
    scripted.say("The replica stays for a week.", delay=0.1)
    message, reply = ask(session, "Does the replica stay?", owner)
    events = say(reply)
    text = "".join(event.text for event in events if isinstance(event, Delta))
    reply = Message.objects.get(pk=reply.pk)
    assert len(events) > 2
    assert reply.text == text == "The replica stays for a week."
    assert reply.status == Status.COMPLETE
    assert reply.parent_id == message.pk
    assert reply.output_tokens and reply.first_token_ms is not None
    assert [section["name"] for section in reply.receipt["sections"]] == ["persona", "message"]


def test_the_prompt_contains_earlier_messages(session, owner, scripted):
    scripted.say("Noted.")
    say(ask(session, "The cutover is on 3 March.", owner)[1])
    scripted.say("On 3 March.")
    say(ask(session, "When is the cutover?", owner)[1])
    sent = [(message["role"], message["content"]) for message in scripted.requests[-1]["messages"]]
    assert sent[-3:] == [
        ("user", "The cutover is on 3 March."),
        ("assistant", "Noted."),
        ("user", "When is the cutover?"),
    ]


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (lambda model: model.status(500), "provider returned an error"),
        (lambda model: model.status(429, retry_after=7), "requests. Try again in 7 s."),
        (lambda model: model.nothing(), "an empty reply"),
        (lambda model: model.hang(), "did not answer in time"),
        (lambda model: model.garbage(), ""),
    ],
)
def test_a_failure_is_shown_and_can_be_retried(session, owner, scripted, settings, trouble, reason):
    settings.MODEL_FIRST_TOKEN_TIMEOUT = settings.MODEL_TIMEOUT = 1
    trouble(scripted)
    message, reply = ask(session, "Hello", owner)
    say(reply)
    failed = Message.objects.get(pk=reply.pk)
    assert failed.status == Status.FAILED
    assert reason in failed.error and failed.error
    assert failed.text == ""

    scripted.say("Hello again.")
    second_reply = begin_reply(message)
    say(second_reply)
    second_reply.refresh_from_db()
    session.refresh_from_db()
    assert (second_reply.status, second_reply.text, second_reply.parent_id) == (
        "complete",
        "Hello again.",
        message.pk,
    )
    assert session.head_id == second_reply.pk


@pytest.mark.parametrize("claims", [(2**31, 2**31), (10**30, 10**30)])
def test_absurd_numbers_of_tokens_lose_no_reply(session, owner, scripted, claims):
    model = "openai-chat:scripted"
    ModelPrice.objects.create(model=model, input_price=999_999, output_price=999_999)
    scripted.queue(Answer("On 3 March.", claims=claims))
    _, reply = ask(session, "When is the cutover?", owner)
    say(reply)
    reply = Message.objects.get(pk=reply.pk)
    assert (reply.status, reply.text) == (Status.COMPLETE, "On 3 March.")
    assert reply.input_tokens == reply.output_tokens == MAX_CALL_TOKENS
    call = Call.objects.get(message_id=reply.pk)
    assert (call.input_tokens, call.cost) == (MAX_CALL_TOKENS, None)


def test_a_call_of_a_tool_with_nul_characters_loses_no_reply(session, owner, scripted):
    Project.objects.filter(pk=session.project_id).update(memory_enabled=False)
    scripted.call(("call\0 1", "search\0", '{"q": "\0"}'), text="Let me see.")
    _, reply = ask(Session.objects.get(pk=session.pk), "When is the cutover?", owner)
    say(reply)
    reply = Message.objects.get(pk=reply.pk)
    assert (reply.status, reply.text) == (Status.COMPLETE, "Let me see.")
    assert [(call.id, call.name) for call in reply.calls] == [("call 1", "search")]


def test_a_reply_without_end_is_cut(session, owner, scripted):
    scripted.queue(Answer(parts=("word " * 2_000,) * 1_000))
    _, reply = ask(session, "Go on", owner)
    say(reply)
    reply = Message.objects.get(pk=reply.pk)
    assert (reply.status, reply.error) == (Status.FAILED, lookups.TRUNCATED)
    assert 0 < len(reply.text) <= MAX_MESSAGE_CHARS
    assert Call.objects.get(message_id=reply.pk).output_tokens


def test_reasoning_without_end_is_cut(session, owner, scripted):
    scripted.queue(Answer("On 3 March.", thoughts=("word " * 2_000,) * 1_000))
    _, reply = ask(session, "Go on", owner)
    say(reply)
    reply = Message.objects.get(pk=reply.pk)
    assert (reply.status, reply.error) == (Status.FAILED, lookups.TRUNCATED)
    assert 0 < Call.objects.get(message_id=reply.pk).output_tokens < MAX_MESSAGE_CHARS


def test_each_request_of_a_reply_may_reason_as_long(session, owner, scripted):
    thoughts = ("word " * 2_000,) * 30
    calls = (("call", "search_memory", '{"query": "cutover"}'),)
    scripted.queue(Answer(finish="tool_calls", calls=calls, thoughts=thoughts))
    scripted.queue(Answer("On 3 March.", thoughts=thoughts))
    _, reply = ask(session, "When is the cutover?", owner)
    say(reply)
    assert Message.objects.get(pk=reply.pk).text == "On 3 March."


def test_calls_of_tools_without_end_are_not_stored(session, owner, scripted):
    Project.objects.filter(pk=session.project_id).update(memory_enabled=False)
    scripted.call(("call", "search", "x" * (MAX_MESSAGE_CHARS + 1)), text="Let me see.")
    _, reply = ask(Session.objects.get(pk=session.pk), "When is the cutover?", owner)
    say(reply)
    reply = Message.objects.get(pk=reply.pk)
    assert (reply.status, reply.error, reply.text) == (
        Status.FAILED,
        lookups.TRUNCATED,
        "Let me see.",
    )
    assert not reply.calls


def test_a_broken_stream_keeps_the_text_so_far(session, owner, scripted):
    scripted.half("The first half of")
    _, reply = ask(session, "Hello", owner)
    say(reply)
    reply = Message.objects.get(pk=reply.pk)
    assert reply.status == Status.FAILED
    assert reply.text
    assert "The first half of".startswith(reply.text)
    assert "connection" in reply.error.lower()


def test_a_stream_closed_early_is_kept_as_interrupted(session, owner, scripted):
    scripted.say("One two three four five six seven eight nine ten.")
    _, reply = ask(session, "Count", owner)

    async def leave_early() -> None:
        stream = generation.stream_reply(reply)
        async for _ in stream:
            break
        await stream.aclose()

    async_to_sync(leave_early)()
    reply = Message.objects.get(pk=reply.pk)
    assert reply.status == Status.INTERRUPTED
    assert reply.text


def test_a_reply_goes_on_when_its_reader_leaves(session, owner, scripted):
    scripted.say("All of this is said.")
    _, reply = ask(session, "Go on", owner)

    async def glance() -> None:
        await live_replies.start(reply)
        async for _ in live_replies.follow(reply.pk):
            break
        await live_replies.wait_for_all()

    async_to_sync(glance)()
    reply = Message.objects.get(pk=reply.pk)
    assert (reply.status, reply.text) == (Status.COMPLETE, "All of this is said.")


def test_a_reader_follows_from_where_it_was(session, owner, scripted):
    scripted.say("Twelve words are here for those who come late to the talk.")
    _, reply = ask(session, "Go on", owner)

    async def read() -> tuple[str, str]:
        await live_replies.start(reply)
        early = "".join([delta.text async for delta in live_replies.follow(reply.pk)])
        late = "".join([delta.text async for delta in live_replies.follow(reply.pk, 7)])
        await live_replies.wait_for_all()
        return early, late

    early, late = async_to_sync(read)()
    assert early == "Twelve words are here for those who come late to the talk."
    assert late == early[7:]


def test_the_sweep_ends_replies_whose_process_died(session, owner, scripted):
    _, reply = ask(session, "Hello", owner)
    assert live_replies.sweep_interrupted() == 0
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE chat_message SET text = 'Half a', heartbeat_at = now() - interval '1 minute'"
            " WHERE id = %s",
            [reply.pk],
        )
    assert live_replies.sweep_interrupted() == 1
    reply.refresh_from_db()
    assert (reply.status, reply.text) == (Status.INTERRUPTED, "Half a")
    assert live_replies.sweep_interrupted() == 0


def silence(*replies, text: str = "Half a") -> None:
    """As if the process of `replies` had stored `text` and been silent for a minute since."""
    a_minute_ago = Now() - timedelta(minutes=1)
    rows = Message.objects.filter(pk__in=[reply.pk for reply in replies])
    rows.update(text=text, status=Status.STREAMING, heartbeat_at=a_minute_ago)


def test_a_reply_that_cannot_be_finalised_does_not_stop_the_others(session, owner, monkeypatch):
    replies = [ask(session, "Hello", owner)[1] for _ in range(2)]
    silence(*replies)
    finalise, failed = generation.finalise, []

    def fail_first(reply, *args) -> bool:
        if not failed:
            failed.append(reply.pk)
            raise ValueError
        return finalise(reply, *args)

    monkeypatch.setattr(generation, "finalise", fail_first)
    assert live_replies.sweep_interrupted() == 1
    statuses = {reply.pk: Message.objects.get(pk=reply.pk).status for reply in replies}
    assert statuses.pop(failed[0]) == Status.STREAMING
    assert [*statuses.values()] == [Status.INTERRUPTED]


def test_heartbeats_continue_until_a_reply_is_stored(session, owner, scripted, monkeypatch):
    monkeypatch.setattr(generation, "FLUSH_INTERVAL_S", 0.05)
    monkeypatch.setattr(generation, "FINALISE_RETRIES_S", (0,))
    finalise, swept = generation.finalise, []

    def fail_once(*args) -> bool:
        if not swept:
            silence(reply)
            swept.append(0)
            raise OperationalError
        deadline = time.monotonic() + 20
        while Message.objects.get(pk=reply.pk).text == "Half a" and time.monotonic() < deadline:
            time.sleep(0.02)
        monkeypatch.setattr(generation, "finalise", finalise)
        swept.append(live_replies.sweep_interrupted())
        return finalise(*args)

    monkeypatch.setattr(generation, "finalise", fail_once)
    scripted.say("Half a loaf.")
    _, reply = ask(session, "Hello", owner)
    say(reply)
    assert swept == [0, 0]
    reply.refresh_from_db()
    assert (reply.status, reply.text) == (Status.COMPLETE, "Half a loaf.")


def test_a_reply_that_was_swept_during_an_outage_is_stored_completely(session, owner):
    _, reply = ask(session, "Hello", owner)
    silence(reply)
    assert live_replies.sweep_interrupted() == 1
    interrupted = Message.objects.get(pk=reply.pk)
    assert generation.finalise(reply, "Half a loaf.", Status.COMPLETE, {"error": ""})
    stored = Message.objects.get(pk=reply.pk)
    assert (stored.status, stored.text, stored.error) == (Status.COMPLETE, "Half a loaf.", "")
    assert stored.version == interrupted.version + 1


@pytest.mark.parametrize("change", ["edited", "deleted", "forgotten"])
def test_a_swept_reply_that_has_changed_since_stays_so(project, session, owner, change):
    _, reply = ask(session, "Hello", owner)
    silence(reply)
    live_replies.sweep_interrupted()
    swept = Message.objects.get(pk=reply.pk)
    if change == "edited":
        edits.edit(swept, "Half a loaf of bread.", owner)
    elif change == "deleted":
        edits.delete(swept)
    else:
        forget(project, ForgetScope(message=reply.pk))
    before = Message.objects.get(pk=reply.pk)
    assert not generation.finalise(reply, "Half a loaf.", Status.COMPLETE, {"error": ""})
    after = Message.objects.get(pk=reply.pk)
    assert (after.text, after.status) == (before.text, before.status)


def test_the_sweep_leaves_a_reply_whose_heartbeats_have_resumed(project, session, owner):
    other = Session.objects.create(project=project, creator=owner)
    replies = [ask(chat, "Hello", owner)[1] for chat in (session, other)]
    silence(*replies)
    resumed = []

    def resume(message, **kwargs) -> None:
        [reply] = [reply for reply in replies if reply.pk != message.pk]
        generation.flush([(reply.project_id, reply.pk, "Half a loaf.")])
        resumed.append(reply)

    reply_stored.connect(resume)
    try:
        assert live_replies.sweep_interrupted() == 1
    finally:
        reply_stored.disconnect(resume)
    [reply] = resumed
    reply.refresh_from_db()
    assert (reply.status, reply.text) == (Status.STREAMING, "Half a loaf.")


def connections_in_use() -> int:
    stats = connection.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def test_no_connection_is_held_while_the_model_speaks(session, owner, scripted):
    scripted.say("Slowly, slowly, said the snail.", delay=0.1)
    _, reply = ask(session, "Hello", owner)
    connection.close()
    before, in_use = connections_in_use(), []

    async def watch() -> None:
        in_use.extend([connections_in_use() async for _ in generation.stream_reply(reply)])

    async_to_sync(watch)()
    assert len(in_use) > 3
    # A flush, once a second, takes one for a moment; a stream that held one would have it always.
    assert min(in_use) == before


def test_many_messages_are_written_at_once(session):
    written = post_messages(session, [draft(f"Fact {n}") for n in range(50)])
    assert [message.seq for message in written] == list(range(1, 51))
    assert all(
        child.parent_id == parent.pk for parent, child in zip(written, written[1:], strict=False)
    )
    assert session.messages.count() == 50


def test_a_reply_can_be_stopped_here(session, owner, scripted):
    scripted.say("One two three four five six seven eight nine ten.", delay=0.2)
    _, reply = ask(session, "Count", owner)

    async def stop_early() -> None:
        await live_replies.start(reply)
        async for _ in live_replies.follow(reply.pk):
            await live_replies.stop(reply.pk)
        await live_replies.wait_for_all()

    async_to_sync(stop_early)()
    reply = Message.objects.get(pk=reply.pk)
    assert reply.status == Status.STOPPED
    assert "One" in reply.text
    assert "ten" not in reply.text


def test_a_silent_reply_can_be_stopped_from_another_process(session, owner, scripted):
    scripted.hang()
    _, reply = ask(session, "Count", owner)

    async def stopped_elsewhere() -> None:
        await live_replies.start(reply)
        await in_thread(Message.objects.filter(pk=reply.pk).update, stop_requested=True)
        await live_replies.wait_for_all()

    async_to_sync(stopped_elsewhere)()
    assert Message.objects.get(pk=reply.pk).status == Status.STOPPED


def test_a_reply_of_another_process_is_followed(session, owner):
    _, reply = ask(session, "Count", owner)

    async def elsewhere() -> None:
        for text in ("One", "One two", "One two three"):
            await in_thread(Message.objects.filter(pk=reply.pk).update, text=text)
            await asyncio.sleep(1.2)
        await in_thread(generation.finalise, reply, "One two three four", Status.COMPLETE, {})

    async def read() -> str:
        follower = asyncio.create_task(elsewhere())
        text = "".join([delta.text async for delta in live_replies.follow(reply.pk)])
        await follower
        return text

    assert async_to_sync(read)() == "One two three four"


def test_lookups_of_another_process_are_followed(session, owner):
    _, reply = ask(session, "Count", owner)
    running = {"tool": "search_memory", "arguments": "{}", "result_count": None, "error": ""}

    async def elsewhere() -> None:
        rows = Message.objects.filter(pk=reply.pk)
        for result_count in (None, 3):
            lookup = running | {"result_count": result_count}
            await in_thread(rows.update, lookups=[lookup])
            await asyncio.sleep(1.2)
        await in_thread(generation.finalise, reply, "Three", Status.COMPLETE, {})

    async def read() -> list:
        follower = asyncio.create_task(elsewhere())
        events = [event async for event in live_replies.follow(reply.pk)]
        await follower
        return events

    *lookups, text = async_to_sync(read)()
    assert [event.lookups[0].result_count for event in lookups] == [None, 3]
    assert text == Delta("Three")


def test_watchers_hear_of_every_change(session):
    async def listen() -> list[int]:
        received: list[int] = []

        async def hear() -> None:
            async for version in live_replies.watch(session.pk, 0):
                received.append(version)  # noqa: PERF401  (it never ends by itself)

        async def wait_for_all(version: int) -> None:
            while received.count(version) < 3:
                await asyncio.sleep(0.05)

        tasks = [asyncio.create_task(hear()) for _ in range(3)]
        async with asyncio.timeout(20):
            for version, text in enumerate(("Hello", "Again"), 1):
                await in_thread(post_message, session, text)
                await wait_for_all(version)
        # A poll later they heard nothing else.
        await asyncio.sleep(1.2)
        for task in tasks:
            task.cancel()
        return received

    assert async_to_sync(listen)() == [1, 1, 1, 2, 2, 2]


def test_a_regenerated_early_question_keeps_its_history(session, owner, scripted):
    messages = post_messages(session, [draft(f"Fact {n}") for n in range(300)])
    question = messages[8]
    reply = begin_reply(question)
    say(reply)
    sent = [message["content"] for message in scripted.requests[-1]["messages"]]
    assert sent[1:] == [f"Fact {n}" for n in range(9)]


def test_the_demo_model_has_time_to_load_and_its_replies_are_not_remembered(
    project, session, owner, scripted, settings
):
    settings.MODEL_FIRST_TOKEN_TIMEOUT = 1
    settings.DEMO_MODEL_URL = scripted.base_url.removesuffix("/v1")
    project.chat_model = "demo"
    project.save()
    session.project.refresh_from_db()
    scripted.say("Perhaps.", before=1.5)
    message, reply = ask(session, "Does the replica stay?", owner)
    say(reply)
    for row in (message, reply):
        row.refresh_from_db()
    assert (reply.status, reply.text) == (Status.COMPLETE, "Perhaps.")
    assert (message.remembered, reply.remembered) == (True, False)
