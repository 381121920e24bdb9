"""A reply on its way to a reader, as server-sent events.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import connections
from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from rest_framework.renderers import JSONRenderer

from chat import streams
from chat.api.serializers import MessageSerializer
from chat.database import in_thread
from chat.models import Message, Session, Status
from chat.typesetting import Growing

MEDIA_TYPE = "text/event-stream"
# Seconds of silence after which a proxy is shown that the stream still lives.
PING_SECONDS = 15.0
PING = b": ping\n\n"
# How long a page watches before it asks anew.
WATCH_SECONDS = 600.0

T = TypeVar("T")
# What a message is to its reader: data for a program, or a text such as HTML.
Render = Callable[[Message], object]
# Markdown as HTML that cannot harm.
Typeset = Callable[[str], str]


def data_for(reader) -> Render:
    """Makes of a message what the REST API tells `reader` of it."""
    return lambda message: MessageSerializer(message, context={"reader": reader}).data


def say(reply: Message) -> None:
    """Begins to say `reply`, and returns at once; it is said to the end though nobody listens.

    For a sync view under ASGI: from its thread the call reaches the process's event loop.
    """
    async_to_sync(streams.start)(reply)


def say_to_the_end(reply: Message) -> Message:
    """Says `reply` and returns it as it ended, complete or failed. Raises Http404 if it is gone.

    No connection is held meanwhile.
    """
    connections.close_all()
    async_to_sync(_hear)(reply)
    return get_object_or_404(Message.objects.select_related("author"), pk=reply.pk)


async def _hear(reply: Message) -> None:
    await streams.start(reply)
    async for _ in streams.follow(reply.pk):
        pass


def event_stream(
    reply: Message,
    message: Message | None = None,
    render: Render = data_for(None),
    typeset: Typeset | None = None,
) -> StreamingHttpResponse:
    """The response that tells of `reply` until it is final, to one of any number of readers.

    Its events are `message` (if one is given), `delta` {"text"} for each piece, and at the end
    `done`, or `error` {"detail", "id", "reply"} when the reply failed. `render` makes of a Message
    what `message`, `done` and `reply` carry: a text is sent as it is, all else as JSON. For a
    reader who comes back, call it again: the deltas begin with all that was said so far.

    With `typeset`, the blocks of Markdown that are whole come as events `block` {"html", "rest"}:
    the HTML goes below that of the blocks before, and `rest` is all that is left of the deltas.

    Use it as the end of a sync view, outside of any transaction, after the reply has begun:

        message, reply = replies.ask(chat_session, text, request.user)
        streaming.say(reply)
        return streaming.event_stream(reply, message, render)

    The view's connections are given back before the stream begins; `render` is called for the end
    in another thread and may query there.
    """
    opening = frame("message", render(message)) if message is not None else PING
    return _response(_events(reply.pk, opening, render, typeset))


def version_stream(session: Session, version: int) -> StreamingHttpResponse:
    """The response that tells, as events `version`, of each that the session gets above `version`.

    It ends after a while, so that whoever watches asks again and is let in again, or not.
    """
    return _response(_versions(session.pk, version))


def _response(body: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """A stream that holds no connection of the view that begins it."""
    connections.close_all()
    return StreamingHttpResponse(
        body,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _versions(session_id: UUID, version: int) -> AsyncIterator[bytes]:
    yield PING
    until = time.monotonic() + WATCH_SECONDS
    async for risen in or_silence(streams.watch(session_id, version)):
        yield frame("version", risen) if risen is not None else PING
        if time.monotonic() > until:
            return


async def _events(
    reply_id: UUID, opening: bytes, render: Render, typeset: Typeset | None
) -> AsyncIterator[bytes]:
    yield opening
    growing = Growing()
    async for delta in or_silence(streams.follow(reply_id)):
        if delta is None:
            yield PING
        elif typeset is not None and (whole := growing.add(delta.text)):
            html = await asyncio.to_thread(typeset, whole)
            yield frame("block", {"html": html, "rest": growing.open})
        else:
            yield frame("delta", {"text": delta.text})
    yield await in_thread(_ending, reply_id, render)


async def or_silence(coming_in: AsyncIterator[T]) -> AsyncIterator[T | None]:
    """What comes in, and None whenever PING_SECONDS have passed without anything."""
    coming = asyncio.ensure_future(anext(coming_in, None))
    try:
        while True:
            await asyncio.wait({coming}, timeout=PING_SECONDS)
            if not coming.done():
                yield None
                continue
            came = coming.result()
            if came is None:
                return
            yield came
            coming = asyncio.ensure_future(anext(coming_in, None))
    finally:
        coming.cancel()


def _ending(reply_id: UUID, render: Render) -> bytes:
    reply = Message.objects.select_related("author", "session").filter(pk=reply_id).first()
    if reply is None:
        return frame("error", {"detail": "This reply was deleted.", "id": reply_id, "reply": None})
    if reply.status == Status.FAILED:
        failure = {"detail": reply.error, "id": reply_id, "reply": render(reply)}
        return frame("error", failure)
    return frame("done", render(reply))


def frame(event: str, data: object) -> bytes:
    """One event on the wire, each line of `data` in a field of its own: a bare one would end it."""
    text = data if isinstance(data, str) else JSONRenderer().render(data).decode()
    lines = "".join(f"data: {line}\n" for line in re.split(r"\r\n|\r|\n", text))
    return f"event: {event}\n{lines}\n".encode()
