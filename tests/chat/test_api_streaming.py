"""A reply as server-sent events: message, delta, done or error."""

import json
import threading

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import AsyncClient

from chat.api.answering import EVENT
from chat.conversations.messages import begin_reply, post_message
from chat.models import Message, Session, Status
from chat.streaming import live_replies, sse
from chat.streaming.poller import StreamGrant
from projects.models import Membership, Token
from tests.scripted import Answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner)


@pytest.fixture
def url(session) -> str:
    return f"/api/v1/sessions/{session.pk}/messages/"


@pytest.fixture
def send():
    """Posts as `user`, accepting events; `read` is given the response inside the event loop."""

    def run(user, url: str, body: dict, read):
        token = Token.objects.create(user=user)[1]
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}

        async def talk():
            response = await AsyncClient().post(
                url, body, content_type="application/json", headers=headers
            )
            result = await read(response)
            await live_replies.wait_for_all()
            return response, result

        return async_to_sync(talk)()

    return run


async def whole(response) -> str:
    return b"".join([part async for part in response.streaming_content]).decode()


async def nothing(response) -> None:
    pass


def events(text: str) -> list[tuple[str, dict]]:
    events_found = []
    for block in text.split("\n\n"):
        if block.startswith("event: "):
            head, _, data = block.partition("\ndata: ")
            event = head.splitlines()[0].removeprefix("event: ")
            events_found.append((event, json.loads(data)))
    return events_found


def test_reasoning_is_shown_and_not_stored(send, owner, url, scripted):
    scripted.queue(Answer("On 3 March.", thoughts=("They ask for a day. ", "It is in the plan.")))
    _response, text = send(owner, url, {"content": "When?"}, whole)
    stream_events = events(text)
    thinking = [data["text"] for name, data in stream_events if name == "thinking"]
    assert "".join(thinking) == "They ask for a day. It is in the plan."
    assert all(f'"{name}"' in json.dumps(EVENT) for name, _data in stream_events)
    assert "".join(data["text"] for name, data in stream_events if name == "delta") == "On 3 March."
    assert "plan" not in json.dumps(stream_events[-1])
    reply = Message.objects.get(role="assistant")
    assert reply.text == "On 3 March."
    assert "plan" not in json.dumps([Message.objects.values_list().get(pk=reply.pk)], default=str)


def test_a_reply_streams_while_it_is_generated(send, owner, url, scripted):
    scripted.say("On 3 March,\n\nat nine.", delay=0.1)
    response, text = send(owner, url, {"content": "When?"}, whole)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Accel-Buffering"] == "no"
    stream_events = events(text)
    names = [name for name, _ in stream_events]
    assert names[0] == "message"
    assert names[-1] == "done"
    assert set(names[1:-1]) == {"delta"}
    assert len(names) > 3
    assert stream_events[0][1]["content"] == "When?"
    message_text = "".join(data["text"] for name, data in stream_events if name == "delta")
    assert message_text == stream_events[-1][1]["content"] == "On 3 March,\n\nat nine."
    assert stream_events[-1][1]["status"] == "complete"


def test_a_failure_ends_the_stream_with_its_reason(send, owner, url, scripted):
    scripted.status(500)
    _, text = send(owner, url, {"content": "When?"}, whole)
    name, data = events(text)[-1]
    reply = Message.objects.get(role="assistant")
    assert name == "error"
    assert data["detail"] == reply.error != ""
    assert data["id"] == str(reply.pk)
    assert data["reply"]["status"] == reply.status == "failed"


def test_the_reply_is_generated_without_readers(send, owner, url, scripted):
    scripted.say("All of this is said.", delay=0.02)
    send(owner, url, {"content": "Go on"}, nothing)
    reply = Message.objects.get(role="assistant")
    assert (reply.status, reply.text) == (Status.COMPLETE, "All of this is said.")


def test_a_refused_request_gets_json(send, owner, stranger, url):
    for user, status in ((owner, 400), (stranger, 404)):
        response, _ = send(user, url, {}, nothing)
        assert response.status_code == status
        assert response.headers["Content-Type"] == "application/json"


def test_silence_is_filled_with_pings(send, owner, url, scripted, monkeypatch):
    monkeypatch.setattr(sse, "PING_INTERVAL_S", 0.05)
    scripted.say("At last.", before=0.3)
    _, text = send(owner, url, {"content": "Slowly"}, whole)
    assert text.count(": ping\n\n") >= 3
    assert events(text)[-1][1]["content"] == "At last."


def test_no_connection_is_held_while_a_stream_waits(send, owner, url, scripted):
    scripted.say("Slowly, slowly, said the snail.", delay=0.1)
    in_use = []

    async def watch(response) -> None:
        async for _ in response.streaming_content:
            stats = connection.pool.get_stats()
            in_use.append(stats["pool_size"] - stats["pool_available"])

    send(owner, url, {"content": "Hello"}, watch)
    # The first write of the reply may still be under way at the beginning.
    assert in_use[4] == 0


def test_a_second_reader_hears_all_of_it(session, owner, scripted):
    scripted.say("All of this is said.")
    reply = begin_reply(post_message(session, "Go on", author=owner))

    async def read() -> list[str]:
        await live_replies.start(reply)
        await live_replies.wait_for_all()
        grant = StreamGrant(owner.pk, session.project_id, session.pk)
        response = sse.event_stream(reply, grant, render=lambda message: f"<p>{message.text}</p>")
        return await whole(response)

    text = async_to_sync(read)()
    assert 'event: delta\nid: 20\ndata: {"text":"All of this is said."}\n\n' in text
    assert text.endswith("event: done\nid: end\ndata: <p>All of this is said.</p>\n\n")


def test_a_reply_that_was_deleted_ends_in_an_error(session, owner):
    reply = begin_reply(post_message(session, "Go on", author=owner))
    Message.objects.filter(pk=reply.pk).delete()
    grant = StreamGrant(owner.pk, session.project_id, session.pk)
    [(name, data)] = events(async_to_sync(whole)(sse.event_stream(reply, grant, render=str)))
    assert (name, data["id"]) == ("error", str(reply.pk))


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\rb"])
def test_each_line_has_a_field_of_its_own(text):
    assert sse.format_event("done", text) == b"event: done\ndata: a\ndata: b\n\n"
    assert b"\r" not in sse.format_event("delta", {"text": text})
    assert sse.format_event("delta", {"text": text}).count(b"\n") == 3


def test_the_first_event_does_not_wait_for_the_model(send, owner, url, scripted):
    came, waited = threading.Event(), []

    def late(request) -> str:
        waited.append(came.wait(20))
        return "Late."

    scripted.default = late

    async def first(response) -> None:
        async for part in response.streaming_content:
            assert part.startswith(b"event: message\n")
            came.set()
            return
        raise AssertionError("nothing came")

    send(owner, url, {"content": "Hello"}, first)
    assert False not in waited


def test_lookups_are_events(send, owner, url, scripted):
    arguments = '{"query": "otter"}'
    scripted.call(("1", "search_memory", arguments))
    scripted.say("I do not know.")
    _, text = send(owner, url, {"content": "When?"}, whole)
    received = events(text)
    lookup = {"tool": "search_memory", "arguments": arguments, "result_count": 0, "error": ""}
    lookups = [data for name, data in received if name == "lookups"]
    assert lookups[-1] == [lookup]
    assert [name for name, _ in received][:2] == ["message", "lookups"]
    name, reply = received[-1]
    assert (name, reply["lookups"], reply["tool_calls"]) == ("done", [lookup], [])
    assert "lookups" not in [line for line in text.splitlines() if line.startswith("id: ")]


@pytest.mark.parametrize("waits_at", ["api", "v1", "v1 with a session"])
def test_who_loses_access_while_waiting_for_a_reply_does_not_get_it(
    waits_at, api, editor, session, url, scripted
):
    def remove(request) -> str:
        Membership.objects.filter(user=editor).delete()
        return "The cutover is on 3 March."

    scripted.queue(remove)
    text = "When is the cutover?"
    if waits_at == "api":
        response = api(editor).post(url, {"content": text}, format="json")
    else:
        body = {"model": "billing", "messages": [{"role": "user", "content": text}]}
        headers = {"X-Strata-Session": "mine"} if "session" in waits_at else {}
        path = "/v1/chat/completions"
        response = api(editor).post(path, body, format="json", headers=headers)
    assert response.status_code == (404 if waits_at == "api" else 401)
    assert b"3 March" not in response.content
