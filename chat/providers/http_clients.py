"""HTTP clients for servers of OpenAI's chat completions API, and batching of their streams."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import groupby
from typing import Any, NamedTuple
from urllib.request import getproxies

import httpx2
from pydantic_core import from_json

from chat.providers.base import Delta, Thought
from chat.providers.http_transport import AiohttpTransport
from projects.core.outbound_http import OutboundError, check_url, trusted_certificates

# The same time-outs as in pydantic-ai's own clients.
TIMEOUT = httpx2.Timeout(600, connect=5)
LIMITS = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100)
# The maximum size of a response. An event for each of 200,000 tokens takes 50 MB.
MAX_RESPONSE_BYTES, MAX_STREAM_BYTES = 10_000_000, 100_000_000
# The maximum size of an event. The incomplete event is copied with each chunk that arrives.
MAX_EVENT_BYTES = 2**20
# After this number of events, other tasks of the process get their turn. A chunk may have 100,000
# empty events.
EVENTS_PER_TURN = 200


def new_http_client(is_guarded: bool = False) -> httpx2.AsyncClient:
    """Return a client for many concurrent streams in the running event loop.

    All clients share their TLS certificates, because loading these takes 20 ms. A guarded client
    only sends requests to the public internet. If the environment names proxies, httpx2's own
    connections use them, and deliver each piece of a stream at once.
    """
    has_proxies = bool(getproxies().keys() - {"no"})
    return httpx2.AsyncClient(
        timeout=TIMEOUT,
        limits=LIMITS,
        verify=trusted_certificates(),
        transport=None if has_proxies else AiohttpTransport(LIMITS, is_guarded),
        # A compressed response could be a thousand times larger than what is received.
        headers={"Accept-Encoding": "identity"},
        event_hooks={
            "request": [check_address] if is_guarded else [],
            "response": [limit_size] if has_proxies else [limit_size, batch_events],
        },
    )


async def check_address(request: httpx2.Request) -> None:
    """Raise `ConnectError` if the address of `request` is not on the public internet."""
    try:
        await asyncio.to_thread(check_url, str(request.url))
    except OutboundError as error:
        raise httpx2.ConnectError(str(error), request=request) from error


async def limit_size(response: httpx2.Response) -> None:
    """Limit the body of `response` to MAX_STREAM_BYTES if it is an event stream, else to
    MAX_RESPONSE_BYTES: a response hook for an HTTP client.

    Raises `RemoteProtocolError` if it is compressed although this was not accepted.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.RemoteProtocolError("The response is compressed.", request=response.request)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    limit = MAX_STREAM_BYTES if _is_event_stream(response) else MAX_RESPONSE_BYTES
    response.stream = LimitedStream(response.stream, limit)


def _is_event_stream(response: httpx2.Response) -> bool:
    content_type: str = response.headers.get("content-type", "")
    return content_type.startswith("text/event-stream")


class LimitedStream(httpx2.AsyncByteStream):
    """Wraps the byte stream of a response. After `max_bytes`, it raises `RemoteProtocolError`."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream, self._max_bytes = stream, max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._max_bytes:
                raise httpx2.RemoteProtocolError("The response is too large.")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


# The pause between two batches if this process has one open stream. It is shorter than the time
# between two tokens of an ordinary model. Each further stream adds twice this time to the pause of
# all: each of five streams delivers text five times a second, each of MAX_PAUSE_STREAMS or more
# twice a second.
PAUSE_S = 0.02
MAX_PAUSE_STREAMS = 13
# The keys of text in a delta. Servers use different names.
TEXT_KEYS = ("content", "reasoning_content", "reasoning")
DONE_EVENT = b"data: [DONE]"
# An event of chat completions, and the end of a reply in it. Quotes within a text are escaped.
CHUNK, FINISHED = b'"choices":', re.compile(rb'"finish_reason"\s*:\s*"[^"]')
EVENT_END = re.compile(rb"\r?\n\r?\n")

# Reasoning in the text of a reply. pydantic-ai recognises a tag only as the whole text of an event.
THINKING_START, THINKING_END = "<think>", "</think>"
# Characters that pydantic-ai may interpret as part of thinking tags or special tokens.
MARKS = re.compile("[<>\\[\\]\u200b-\u200d\u2060\ufeff]")

_open_streams: set["BatchedEventStream"] = set()


class TextChannel:
    """The text of one answer, passed to its reader with as little work as possible.

    Text that pydantic-ai would not change (text without MARKS) goes directly from the HTTP stream
    to the reader. The SDK and pydantic-ai get it later, as one piece. Each piece takes them 0.3 ms,
    which was a third of the CPU time of a reply.
    """

    def __init__(self) -> None:
        self.has_text = False
        self._pieces: list[str] = []
        self._thoughts: list[str] = []
        self._changed = asyncio.Event()
        self._held: list[ParsedEvent] = []
        # The last interpreted event, the text that it resulted in, and the number of characters of
        # this text that the reader already has.
        self._event: ParsedEvent | None = None
        self._result = ""
        self._known = 0

    def take(self, event: "ParsedEvent") -> bool:
        """Pass the text of `event` to the reader, or return False if it must be interpreted."""
        last = self._event
        if last is None or last.key != "content" or self._result != last.text:
            return False
        if (event.key, event.frame) != (last.key, last.frame) or MARKS.search(event.text):
            return False
        self._held.append(event)
        self._add(event.text)
        return True

    def events_before(self, event: "ParsedEvent | None") -> "list[ParsedEvent]":
        """Return the held-back text as an event, which must be interpreted before `event`."""
        held, self._held = self._held, []
        self._known = sum(len(item.text) for item in held)
        self._event, self._result = event, ""
        return [] if not held else [held[0].joined(held)]

    def add_interpreted(self, text: str) -> None:
        """Pass text from pydantic-ai to the reader, except the part that the reader already has."""
        known = min(self._known, len(text))
        self._known -= known
        if text := text[known:]:
            self._result += text
            self._add(text)

    def add_thought(self, text: str) -> None:
        self._thoughts.append(text)
        self._changed.set()

    def _add(self, text: str) -> None:
        self.has_text = self.has_text or not text.isspace()
        self._pieces.append(text)
        self._changed.set()

    async def read(self, work: asyncio.Task[Any]) -> AsyncIterator[Delta | Thought]:
        """Yield text and reasoning as they arrive, until the task `work`, which fills this channel,
        is done.

        If reasoning and text arrive together, the reasoning comes first.
        """
        work.add_done_callback(lambda task: self._changed.set())
        while self._pieces or self._thoughts or not work.done():
            await self._changed.wait()
            self._changed.clear()
            if thought := "".join(self._thoughts):
                self._thoughts.clear()
                yield Thought(thought)
            if text := "".join(self._pieces):
                self._pieces.clear()
                yield Delta(text)


# The channel of the request that the current task sends.
text_channel: ContextVar[TextChannel | None] = ContextVar("text_channel", default=None)


async def batch_events(response: httpx2.Response) -> None:
    """Batch the events of `response`: a response hook for an HTTP client."""
    if _is_event_stream(response):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        has_length = not {"transfer-encoding", "content-length"}.isdisjoint(response.headers)
        response.stream = BatchedEventStream(response.stream, text_channel.get(), has_length)


class BatchedEventStream(httpx2.AsyncByteStream):
    """Wraps the byte stream of a response and yields whole events, several in one batch.

    It pauses after each batch, so that the events that arrive meanwhile form the next batch. If the
    end of the connection is the end of the stream (not `has_length`), a reply without a sign of its
    end has failed: `RemoteProtocolError`.
    """

    def __init__(
        self,
        stream: httpx2.AsyncByteStream,
        channel: TextChannel | None = None,
        has_length: bool = True,
    ) -> None:
        self._stream = stream
        self._has_length = has_length
        self._channel = channel
        self._is_thinking = self._has_text = False
        self._has_chunks = self._is_finished = False
        # The beginning of a tag, until the event with the rest arrives.
        self._tag_start: ParsedEvent | None = None
        self._events = self._batches()

    def __aiter__(self) -> AsyncIterator[bytes]:
        # Always return the same iterator: the SDK stops after the last event and resumes.
        return self._events

    async def _batches(self) -> AsyncIterator[bytes]:
        _open_streams.add(self)
        rest, pauses, number = b"", False, 0
        failure: httpx2.TransportError | None = None
        try:
            async for chunk in self._stream:
                # Only the new part is searched: servers may send an event byte by byte.
                has_end = EVENT_END.search(rest[-3:] + chunk)
                rest += chunk
                if has_end:
                    *events, rest = EVENT_END.split(rest)
                else:
                    events = []
                for event in _merge(self._with_whole_tags(events)):
                    number += 1
                    if number % EVENTS_PER_TURN == 0:
                        await asyncio.sleep(0)
                    self._note_end(event.content)
                    pauses = (pauses or bool(event.key)) and event.content != DONE_EVENT
                    for ready in self._not_passed_on(event):
                        yield ready.content + b"\n\n"
                if len(rest) > MAX_EVENT_BYTES:
                    raise httpx2.RemoteProtocolError("An event is too large.")
                if pauses:
                    streams = min(len(_open_streams), MAX_PAUSE_STREAMS)
                    await asyncio.sleep(PAUSE_S * (2 * streams - 1))
        except httpx2.TransportError as error:
            failure = error
        for ready in self._not_passed_on(None):
            yield ready.content + b"\n\n"
        if rest:
            self._note_end(rest)
            yield rest
        if self._has_chunks and not (self._has_length or self._is_finished):
            # The connection to a server that died can end like the connection to one that is done.
            failure = failure or httpx2.RemoteProtocolError("The stream ended before the reply.")
        if failure is not None:
            raise failure

    def _note_end(self, content: bytes) -> None:
        # The events of other APIs begin with their type, and may quote such a key.
        self._has_chunks |= content.startswith(b"data:") and CHUNK in content
        self._is_finished = (
            self._is_finished or DONE_EVENT in content or bool(FINISHED.search(content))
        )

    def _with_whole_tags(self, events: Iterable[bytes]) -> "Iterator[ParsedEvent]":
        """Yield the parsed events. The tags of reasoning at the beginning of the reply get events
        of their own, which are not merged with others. Servers may send a tag in several events.
        """
        for event in map(_parse, events):
            if self._has_text or (event.key != "content" and self._tag_start is None):
                yield event
                continue
            start, self._tag_start = self._tag_start, None
            if event.key == "content":
                yield from self._split(event, (start.text if start else "") + event.text)
            else:
                yield from filter(None, [start, event])

    def _split(self, event: "ParsedEvent", text: str) -> "Iterator[ParsedEvent]":
        """Yield `text` in events like `event`. Hold back the beginning of a tag at its end."""
        while text and not self._has_text:
            tag = THINKING_END if self._is_thinking else THINKING_START
            before, found, after = text.partition(tag)
            if not found:
                held = _overlap(text, tag)
                before, after = text[: len(text) - held], text[len(text) - held :]
            if before.strip() and not self._is_thinking:
                self._has_text = True
                break
            if before:
                yield event.with_text(before)
            if not found:
                self._tag_start = event.with_text(after) if after else None
                return
            yield event.with_text(tag, is_alone=True)
            self._has_text, self._is_thinking = self._is_thinking, not self._is_thinking
            text = after
        if text:
            yield event.with_text(text)

    def _not_passed_on(self, event: "ParsedEvent | None") -> "list[ParsedEvent]":
        """Return the events that the SDK must interpret after `event`. At the end, it is None."""
        last = self._tag_start if event is None else event
        ending = [] if last is None else [last]
        if self._channel is None:
            return ending
        if event is not None and self._channel.take(event):
            return []
        return [*self._channel.events_before(event), *ending]

    async def aclose(self) -> None:
        _open_streams.discard(self)
        await self._stream.aclose()


class ParsedEvent(NamedTuple):
    content: bytes
    # The event without its text. Consecutive events with the same frame and key can be merged.
    frame: object
    key: str = ""
    text: str = ""

    def joined(self, events: "Sequence[ParsedEvent]") -> "ParsedEvent":
        """Return this event with the joined text of `events`, of which it is the first."""
        if len(events) == 1:
            return self
        return self.with_text("".join(event.text for event in events))

    def with_text(self, text: str, is_alone: bool = False) -> "ParsedEvent":
        """Return this event with another text. If `is_alone`, it is not merged with others."""
        if text == self.text and not is_alone:
            return self
        payload = json.loads(self.content.removeprefix(b"data:"))
        payload["choices"][0]["delta"][self.key] = text
        content = b"data: " + json.dumps(payload).encode()
        return (
            ParsedEvent(content, object())
            if is_alone
            else self._replace(content=content, text=text)
        )


def _overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of `text` are the beginning of `tag`, but not all."""
    lengths = range(min(len(text), len(tag) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(tag[:length])), 0)


def _merge(events: Iterable[ParsedEvent]) -> Iterator[ParsedEvent]:
    """Yield the events. Consecutive events that add to the same text are merged."""
    for _, group in groupby(events, key=lambda event: (event.key, event.frame)):
        first, *more = group
        yield first.joined([first, *more])


def _parse(content: bytes) -> ParsedEvent:
    """Parse an event of chat completions that only adds text. Any other event is never merged."""
    opaque = ParsedEvent(content, object())
    try:
        # Seven times as fast as json for bytes. This runs for each token.
        payload: dict[str, Any] = from_json(content.removeprefix(b"data:"))
        [choice] = payload["choices"]
        delta = choice["delta"]
        [(key, text)] = [item for item in delta.items() if item[1] and item[0] != "role"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return opaque
    if key not in TEXT_KEYS or not isinstance(text, str):
        return opaque
    if choice.get("finish_reason") or choice.get("logprobs"):
        return opaque
    # Ignore fields that differ in each event and that no client uses.
    for ignored in ("created", "obfuscation"):
        payload.pop(ignored, None)
    del delta[key]
    return ParsedEvent(content, payload, key, text)
