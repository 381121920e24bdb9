"""Streams that are joined and resumed: nothing is lost, nothing comes twice."""

import asyncio
import json

import pytest
from asgiref.sync import async_to_sync
from django.db.models.functions import Now
from django.test import AsyncClient

from chat.conversations import edits, generation
from chat.conversations.messages import begin_reply, post_message
from chat.models import Message, Session, Status
from chat.streaming import live_replies, poller
from projects.core.database import in_thread
from projects.models import Token

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "On 3 March, at nine. 🦊 Bring coffee."
KEY = {"Idempotency-Key": "one"}


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner)


@pytest.fixture
def bearer(owner) -> dict[str, str]:
    token = Token.issue(owner)[1]
    return {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}


@pytest.fixture
def finished_reply(session, owner) -> Message:
    """A reply that is over."""
    question = post_message(session, "When?", author=owner)
    return post_message(session, TEXT, role="assistant", parent=question)


def events(text: str) -> list[tuple[str, str | None, dict]]:
    """(event, id, data) of each."""
    events_found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if fields:
            events_found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return events_found


def words(stream_events: list) -> str:
    return "".join(data["text"] for event, _, data in stream_events if event == "delta")


async def whole(response) -> str:
    return b"".join([part async for part in response.streaming_content]).decode()


async def get(reply: Message, headers: dict[str, str]):
    return await AsyncClient().get(f"/api/v1/messages/{reply.pk}/stream/", headers=headers)


async def post(session: Session, headers: dict[str, str], content: str = "When?"):
    url = f"/api/v1/sessions/{session.pk}/messages/"
    body = {"content": content}
    return await AsyncClient().post(url, body, content_type="application/json", headers=headers)


def follow(reply: Message, headers: dict[str, str]) -> list[tuple[str, str | None, dict]]:
    async def talk() -> str:
        return await whole(await get(reply, headers))

    return events(async_to_sync(talk)())


def test_the_ids_are_positions_in_characters(session, bearer, scripted):
    scripted.say(TEXT, delay=0.02)

    async def talk() -> str:
        text = await whole(await post(session, bearer))
        await live_replies.wait_for_all()
        return text

    stream_events = events(async_to_sync(talk)())
    assert [stream_events[0][:2], stream_events[-1][:2]] == [("message", "0"), ("done", "end")]
    text = ""
    for _, id, data in stream_events[1:-1]:
        text += data["text"]
        assert int(id) == len(text)
    assert text == TEXT


@pytest.mark.parametrize("position", range(0, len(TEXT) + 1, 3))
def test_a_returning_reader_of_a_finished_reply_gets_the_rest(finished_reply, bearer, position):
    stream_events = follow(finished_reply, bearer | {"Last-Event-ID": str(position)})
    assert words(stream_events) == TEXT[position:]
    assert (stream_events[-1][0], stream_events[-1][2]["content"]) == ("done", TEXT)
    assert "message" not in {event for event, *_ in stream_events}


def test_a_returning_reader_of_a_running_reply_misses_nothing(session, owner, bearer, scripted):
    scripted.say(TEXT, delay=0.03)
    reply = begin_reply(post_message(session, "When?", author=owner))

    async def some(headers, number: int) -> list:
        """So many pieces, and the connection breaks."""
        response, received = await get(reply, headers), []
        async for part in response.streaming_content:
            received += events(part.decode())
            if len(received) >= number:
                await response.streaming_content.aclose()
                break
        return received

    async def talk() -> list:
        await live_replies.start(reply)
        stream_events, last = [], {}
        while not stream_events or stream_events[-1][0] != "done":
            stream_events += await some(bearer | last, 2)
            last = {"Last-Event-ID": stream_events[-1][1]}
        await live_replies.wait_for_all()
        return stream_events

    stream_text = async_to_sync(talk)()
    assert words(stream_text) == TEXT
    assert stream_text[-1][2]["content"] == TEXT


def test_a_returning_reader_of_another_process_misses_nothing(session, owner, bearer, monkeypatch):
    monkeypatch.setattr(poller, "POLL_INTERVAL_S", 0.05)
    reply = begin_reply(post_message(session, "When?", author=owner))
    rows = Message.objects.filter(pk=reply.pk)

    def flushed(position: int) -> None:
        rows.update(text=TEXT[:position], status=Status.STREAMING, heartbeat_at=Now())

    async def elsewhere() -> None:
        for position in range(12, len(TEXT), 5):
            await in_thread(flushed, position)
            await asyncio.sleep(0.1)
        await in_thread(generation.finalise, reply, TEXT, Status.COMPLETE, {})

    async def talk() -> str:
        await in_thread(flushed, 12)
        speaking = asyncio.create_task(elsewhere())
        text = await whole(await get(reply, bearer | {"Last-Event-ID": "7"}))
        await speaking
        return text

    stream_events = events(async_to_sync(talk)())
    assert words(stream_events) == TEXT[7:]
    assert len(stream_events) > 3
    assert stream_events[-1][2]["content"] == TEXT


def test_a_reader_of_the_whole_reply_is_asked_not_to_reconnect(finished_reply, bearer):
    async def talk():
        return await get(finished_reply, bearer | {"Last-Event-ID": "end"})

    assert async_to_sync(talk)().status_code == 204


def test_a_reader_beyond_the_stored_events_gets_only_the_end(finished_reply, bearer):
    stream_events = follow(finished_reply, bearer | {"Last-Event-ID": "999"})
    assert [event for event, *_ in stream_events] == ["done"]
    assert stream_events[0][2]["content"] == TEXT


@pytest.mark.parametrize("id", ["-1", "1.5", "x", "²", "9" * 10])
def test_an_invalid_last_event_id_is_refused(finished_reply, bearer, id):
    async def talk():
        return await get(finished_reply, bearer | {"Last-Event-ID": id.encode().decode("latin-1")})

    response = async_to_sync(talk)()
    assert response.status_code == 400
    assert "Last-Event-ID" in json.loads(response.content)["detail"]


def test_a_stranger_gets_404_and_a_viewer_all_of_it(finished_reply, viewer, stranger):
    async def talk(user):
        return await get(finished_reply, {"Authorization": f"Bearer {user.secret}"})

    for user in (viewer, stranger):
        user.secret = Token.issue(user)[1]
    assert async_to_sync(talk)(stranger).status_code == 404

    async def read() -> str:
        return await whole(await talk(viewer))

    assert words(events(async_to_sync(read)())) == TEXT


def test_a_deleted_reply_tells_no_word(finished_reply, bearer):
    edits.delete(finished_reply)
    text = str(follow(finished_reply, bearer))
    assert "March" not in text
    assert "'done'" in text


def test_a_failed_reply_ends_as_it_ended(finished_reply, bearer):
    Message.objects.filter(pk=finished_reply.pk).update(
        status=Status.FAILED, error="The model is away."
    )
    event, id, data = follow(finished_reply, bearer)[-1]
    assert (event, id, data["detail"]) == ("error", "end", "The model is away.")


def test_the_same_request_joins_the_running_stream(session, bearer, scripted):
    scripted.say(TEXT, delay=0.03)

    async def talk() -> list:
        first = await post(session, bearer | KEY)
        # Some words later.
        beginning = [await anext(first.streaming_content) for _ in range(3)]
        second = await post(session, bearer | KEY)
        joined = await whole(second)
        rest = await whole(first)
        third = await post(session, bearer | KEY | {"Last-Event-ID": "12"})
        resumed = await whole(third)
        await live_replies.wait_for_all()
        assert "Idempotent-Replayed" not in first.headers
        assert second.headers["Idempotent-Replayed"] == "true"
        return [b"".join(beginning).decode() + rest, joined, resumed]

    first, joined, resumed = (events(text) for text in async_to_sync(talk)())
    assert words(first) == words(joined) == TEXT
    assert words(resumed) == TEXT[12:]
    assert first[0][0] == joined[0][0] == "message"
    assert first[0][2]["id"] == joined[0][2]["id"]
    assert first[-1][2] == joined[-1][2] == resumed[-1][2]
    assert session.messages.count() == 2
    assert len(scripted.requests) == 1


def test_the_same_request_without_events_awaits_the_same_reply(session, bearer, scripted):
    scripted.say(TEXT, delay=0.02)
    plain = bearer | KEY | {"Accept": "application/json"}

    async def talk():
        first, second = await asyncio.gather(post(session, plain), post(session, plain))
        await live_replies.wait_for_all()
        return first, second, await post(session, bearer | KEY)

    async def all_of_it():
        first, second, third = await talk()
        return first, second, await whole(third)

    first, second, streamed = async_to_sync(all_of_it)()
    answers = [json.loads(item.content) for item in (first, second) if item.status_code == 201]
    assert {first.status_code, second.status_code} <= {201, 409}
    assert {answer["reply"]["content"] for answer in answers} == {TEXT}
    assert words(events(streamed)) == TEXT
    assert session.messages.count() == 2


def test_a_failed_reply_is_returned_again_without_a_retry(session, bearer, scripted):
    scripted.status(500)
    plain = bearer | KEY | {"Accept": "application/json"}

    async def talk():
        first = await post(session, plain)
        return first, await post(session, plain)

    first, second = async_to_sync(talk)()
    assert (first.status_code, second.status_code) == (201, 201)
    assert json.loads(first.content) == json.loads(second.content)
    assert json.loads(second.content)["reply"]["status"] == "failed"
