"""A reply on its way to a reader, as server-sent events.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import connections
from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from rest_framework.renderers import JSONRenderer

from chat import streams
from chat.admission import Grant
from chat.api.resuming import END
from chat.api.serializers import MessageSerializer
from chat.database import in_thread
from chat.models import Message, Session, Status
from chat.polling import poll
from chat.typesetting import Growing

MEDIA_TYPE = "text/event-stream"
# Seconds of silence after which a proxy is shown that the stream still lives.
PING_SECONDS = 15.0
PING = b": ping\n\n"
# How long a page watches before it asks anew.
WATCH_SECONDS = 600.0

WITHDRAWN = "You may not listen to this any more."

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
    async_to_sync(_say_to_the_end)(reply)
    return _ended(reply)


def hear_to_the_end(reply: Message) -> Message:
    """As `say_to_the_end`, of a reply that somebody has said already."""
    connections.close_all()
    async_to_sync(_hear)(reply)
    return _ended(reply)


def _ended(reply: Message) -> Message:
    return get_object_or_404(Message.objects.select_related("author"), pk=reply.pk)


async def _say_to_the_end(reply: Message) -> None:
    await streams.start(reply)
    await _hear(reply)


async def _hear(reply: Message) -> None:
    async for _ in streams.follow(reply.pk):
        pass


def event_stream(
    reply: Message,
    grant: Grant,
    message: Message | None = None,
    render: Render = data_for(None),
    typeset: Typeset | None = None,
    position: int | None = None,
) -> StreamingHttpResponse:
    """The response that tells of `reply` until it is final, to one of any number of readers, and
    no longer than `grant` holds.

    Its events are `message` (if one is given), `delta` {"text"} for each piece, and at the end
    `done`, or `error` {"detail", "id", "reply"} when the reply failed. `render` makes of a Message
    what `message`, `done` and `reply` carry: a text is sent as it is, all else as JSON. For a
    reader who comes back, call it again: the deltas begin with all that was said so far, or, with
    `position`, with what was said from there on (see `resuming`).

    With `typeset`, the blocks of Markdown that are whole come as events `block` {"html", "rest"}:
    the HTML goes below that of the blocks before, and `rest` is all that is left of the deltas.

    Use it as the end of a sync view, outside of any transaction, after the reply has begun:

        message, reply = replies.ask(chat_session, text, request.user)
        streaming.say(reply)
        return streaming.event_stream(reply, grant, message, render)

    The view's connections are given back before the stream begins; `render` is called for the end
    in another thread and may query there.
    """
    opening = PING
    if message is not None and position is None:
        opening = frame("message", render(message), 0)
    told = Telling(reply.pk, grant, render, typeset, position or 0)
    return _response(_events(told, opening))


def version_stream(session: Session, version: int, grant: Grant) -> StreamingHttpResponse:
    """The response that tells, as events `version`, of each that the session gets above `version`.

    It ends when `grant` holds no more, and after a while in any case, so that whoever watches asks
    again and is let in again, or not.
    """
    return _response(_versions(session.pk, version, grant))


@dataclass
class Telling:
    """What is told of a reply, to whom and how, and how far they have it."""

    reply: UUID
    grant: Grant
    render: Render
    typeset: Typeset | None
    position: int  # characters


def _response(body: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """A stream that holds no connection of the view that begins it."""
    connections.close_all()
    return StreamingHttpResponse(
        body,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _versions(session_id: UUID, version: int, grant: Grant) -> AsyncIterator[bytes]:
    with poll().admitting(grant) as closed:
        yield PING
        until = time.monotonic() + WATCH_SECONDS
        async for risen in or_silence(streams.watch(session_id, version), closed):
            yield frame("version", risen) if risen is not None else PING
            if time.monotonic() > until:
                return


async def _events(told: Telling, opening: bytes) -> AsyncIterator[bytes]:
    growing = Growing()
    with poll().admitting(told.grant) as closed:
        yield opening
        async for delta in or_silence(streams.follow(told.reply, told.position), closed):
            if delta is None:
                yield PING
                continue
            told.position += len(delta.text)
            if told.typeset is not None and (whole := growing.add(delta.text)):
                html = await asyncio.to_thread(told.typeset, whole)
                yield frame("block", {"html": html, "rest": growing.open})
            else:
                yield frame("delta", {"text": delta.text}, told.position)
        if closed.is_set():
            yield frame("error", {"detail": WITHDRAWN, "id": told.reply, "reply": None})
        else:
            yield await in_thread(_ending, told.reply, told.render)


async def or_silence(coming_in: AsyncIterator[T], closed: asyncio.Event) -> AsyncIterator[T | None]:
    """What comes in until `closed` is set, and None whenever PING_SECONDS have passed without
    anything.
    """
    coming = asyncio.ensure_future(anext(coming_in, None))
    closing = asyncio.ensure_future(closed.wait())
    try:
        while True:
            await asyncio.wait(
                {coming, closing}, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if closed.is_set():
                return
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
        closing.cancel()


def _ending(reply_id: UUID, render: Render) -> bytes:
    reply = Message.objects.select_related("author", "session").filter(pk=reply_id).first()
    if reply is None:
        gone = {"detail": "This reply was deleted.", "id": reply_id, "reply": None}
        return frame("error", gone, END)
    if reply.status == Status.FAILED:
        failure = {"detail": reply.error, "id": reply_id, "reply": render(reply)}
        return frame("error", failure, END)
    return frame("done", render(reply), END)


def frame(event: str, data: object, id: int | str | None = None) -> bytes:
    """One event on the wire, each line of `data` in a field of its own: a bare one would end it."""
    text = data if isinstance(data, str) else JSONRenderer().render(data).decode()
    lines = "".join(f"data: {line}\n" for line in re.split(r"\r\n|\r|\n", text))
    place = "" if id is None else f"id: {id}\n"
    return f"event: {event}\n{place}{lines}\n".encode()
