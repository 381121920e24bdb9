"""Replies as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

The id of the events `message` and `delta` is the position in the reply after the event, in
characters. A reader who reconnects with `Last-Event-ID` receives the text from that position. The
event that ends a reply has the id "end". A request with this id gets 204, so that an EventSource
does not reconnect again.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from typing import Literal, TypeVar
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import connections
from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ParseError
from rest_framework.renderers import JSONRenderer

from chat.conversations import admission
from chat.conversations.lookups import LookupsChanged
from chat.models import Message, Session, Status
from chat.prompt.types import Lookup
from chat.providers import Thought
from chat.providers.booking import Payer
from chat.streaming import live_replies
from chat.streaming.markdown_blocks import BlockSplitter
from chat.streaming.poller import StreamGrant, get_poller, require_free_stream, withdrawn_grants
from projects.core.database import PreparedObjects, in_thread

MEDIA_TYPE = "text/event-stream"
# After this time without an event, a comment is sent, so that proxies do not close the stream.
PING_INTERVAL_S = 15.0
PING = b": ping\n\n"
# The time after which a page that watches a session must reconnect.
WATCH_TIMEOUT_S = 600.0
ACCESS_WITHDRAWN = "You no longer have access to this."
END: Literal["end"] = "end"
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    {"type": "string", "pattern": r"^(\d{1,9}|end)$"},
    OpenApiParameter.HEADER,
    description=(
        "The `id` of the last received event of this reply. The stream continues after it, "
        "without the event `message`."
    ),
)

T = TypeVar("T")
# Returns a message as data for JSON, or as text such as HTML.
MessageRenderer = Callable[[Message], object]
# Returns the lookups of a reply as data for JSON, or as text such as HTML.
LookupsRenderer = Callable[[Sequence[Lookup]], object]
# Returns Markdown as safe HTML.
MarkdownRenderer = Callable[[str], str]


@dataclass
class ReplyStream:
    """A reply that is streamed to one reader, and the position that the reader has reached."""

    reply: UUID
    grant: StreamGrant
    render: MessageRenderer
    render_lookups: LookupsRenderer
    render_markdown: MarkdownRenderer | None
    position: int  # characters


def lookup_data(lookups: Sequence[Lookup]) -> object:
    return [asdict(lookup) for lookup in lookups]


def last_event_id(request) -> int | Literal["end"] | None:
    """Return the position that the reader has reached, END, or None. Raises ParseError."""
    value = request.headers.get("Last-Event-ID", "").strip()
    if value == END:
        return END
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= 9):
        raise ParseError("Last-Event-ID must be the id of an event of this reply, such as 120.")
    return int(value)


def start_reply(reply: Message, payer: Payer) -> None:
    """Begin to generate `reply`. Returns at once; the reply continues even without readers.

    For sync views under ASGI. The call is passed from the view's thread to the process's event
    loop. The loop works on a copy of `reply`: the generation changes its object when the reply
    ends, and the view may still be rendering the unfinished reply at that time.
    """
    async_to_sync(live_replies.start)(copy(reply), payer)


def complete_reply(reply: Message, payer: Payer | None, grant: StreamGrant) -> Message:
    """Generate `reply`, wait for its end, and return it, complete or failed.

    Without a payer, wait for a reply that has already begun. No database connection is held while
    waiting. Raises Http404 if the reply is deleted, or if `grant` was withdrawn meanwhile.
    """
    connections.close_all()
    async_to_sync(_wait_for_reply)(reply, payer)
    if withdrawn_grants([grant]):
        raise Http404
    return get_object_or_404(Message.objects.select_related("author"), pk=reply.pk)


async def _wait_for_reply(reply: Message, payer: Payer | None) -> None:
    if payer is not None:
        await live_replies.start(reply, payer)
    else:
        admission.release()
    async for _ in live_replies.follow(reply.pk):
        pass


def event_stream(
    reply: Message,
    grant: StreamGrant,
    render: MessageRenderer,
    message: Message | None = None,
    render_markdown: MarkdownRenderer | None = None,
    position: int | None = None,
    render_lookups: LookupsRenderer = lookup_data,
) -> StreamingHttpResponse:
    """Return the response that streams `reply` to one reader until it is final.

    It ends early if `grant` is withdrawn. The events are `message` (if `message` is given without
    `position`), `lookups` (all lookups so far, whenever one begins or ends), `thinking` {"text"}
    for each piece of the model's reasoning, and `delta` {"text"} for each piece of the reply. The
    last event is `done`, or `error` {"detail", "id", "reply"} if the reply failed. `render` returns
    the data of `message` and `done` (text is sent unchanged, anything else as JSON) and the field
    `reply` of `error`. The deltas begin with the whole text so far, or at `position`.

    With `render_markdown`, complete blocks of Markdown are sent as events `block` {"html", "rest"}:
    the HTML must be added below the earlier blocks, and `rest` replaces the deltas so far.

    Call this at the end of a sync view, outside of transactions, after the reply has begun:

        message, reply = messages.ask(chat_session, text, request.user)
        sse.start_reply(reply, Payer.of(request))
        return sse.event_stream(reply, grant, render, message)

    The view's database connections are closed before the stream begins. For the last event,
    `render` is called in another thread, and may query the database there.
    """
    opening = PING
    if message is not None and position is None:
        opening = format_event("message", render(message), 0)
    stream = ReplyStream(reply.pk, grant, render, render_lookups, render_markdown, position or 0)
    return _response(_reply_events(stream, opening))


def version_stream(session: Session, version: int, grant: StreamGrant) -> StreamingHttpResponse:
    """Return a response that sends an event `version` when the session's version rises above
    `version`.

    It ends when `grant` is withdrawn, and after WATCH_TIMEOUT_S, so that the reader reconnects and
    is authorised again. Raises `TooManyStreamsError`.
    """
    require_free_stream(grant)
    return _response(_version_events(session.pk, version, grant))


def _response(body: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Return a streaming response that holds no database connection of the view."""
    connections.close_all()
    return StreamingHttpResponse(
        body,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _version_events(
    session_id: UUID, version: int, grant: StreamGrant
) -> AsyncIterator[bytes]:
    with get_poller().checking(grant) as withdrawn:
        yield PING
        until = time.monotonic() + WATCH_TIMEOUT_S
        async for current in with_pings(live_replies.watch(session_id, version), withdrawn):
            yield format_event("version", current) if current is not None else PING
            if time.monotonic() > until:
                return


async def _reply_events(stream: ReplyStream, opening: bytes) -> AsyncIterator[bytes]:
    blocks = BlockSplitter()
    live = live_replies.find(stream.reply)
    with get_poller().checking(stream.grant) as withdrawn:
        yield opening
        changes = live_replies.follow(stream.reply, stream.position)
        async for delta in with_pings(changes, withdrawn):
            if delta is None:
                yield PING
                continue
            if isinstance(delta, LookupsChanged):
                yield format_event("lookups", stream.render_lookups(delta.lookups))
                continue
            if isinstance(delta, Thought):
                yield format_event("thinking", {"text": delta.text})
                continue
            stream.position += len(delta.text)
            if stream.render_markdown is not None and (complete := blocks.add(delta.text)):
                html = await asyncio.to_thread(stream.render_markdown, complete)
                yield format_event("block", {"html": html, "rest": blocks.rest})
            else:
                yield format_event("delta", {"text": delta.text}, stream.position)
        if withdrawn.is_set():
            error = {"detail": ACCESS_WITHDRAWN, "id": stream.reply, "reply": None}
            yield format_event("error", error)
        else:
            stored = None if live is None else live.stored
            yield await in_thread(_last_event, stream.reply, stored, stream.render)


async def with_pings(items: AsyncIterator[T], closed: asyncio.Event) -> AsyncIterator[T | None]:
    """Yield the items until `closed` is set, and None after PING_INTERVAL_S without an item."""
    item = asyncio.ensure_future(anext(items, None))
    closing = asyncio.ensure_future(closed.wait())
    try:
        while True:
            await asyncio.wait(
                {item, closing}, timeout=PING_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED
            )
            if closed.is_set():
                return
            if not item.done():
                yield None
                continue
            result = item.result()
            if result is None:
                return
            yield result
            item = asyncio.ensure_future(anext(items, None))
    finally:
        item.cancel()
        closing.cancel()


@PreparedObjects.of(UUID)
def _replies(pk: UUID) -> QuerySet[Message]:
    return Message.objects.filter(pk=pk).select_related("author", "session")


def _last_event(reply_id: UUID, stored: Message | None, render: MessageRenderer) -> bytes:
    reply = copy(stored) if stored is not None else next(iter(_replies(reply_id)), None)
    if reply is None:
        error = {"detail": "This reply was deleted.", "id": reply_id, "reply": None}
        return format_event("error", error, END)
    if reply.status == Status.FAILED:
        error = {"detail": reply.error, "id": reply_id, "reply": render(reply)}
        return format_event("error", error, END)
    return format_event("done", render(reply), END)


def format_event(event: str, data: object, id: int | str | None = None) -> bytes:
    """Return one event as bytes. Each line of the data is a `data` field of its own, because an
    empty line would end the event.
    """
    text = data if isinstance(data, str) else JSONRenderer().render(data).decode()
    lines = "".join(f"data: {line}\n" for line in re.split(r"\r\n|\r|\n", text))
    id_field = "" if id is None else f"id: {id}\n"
    return f"event: {event}\n{id_field}{lines}\n".encode()
