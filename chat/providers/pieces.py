"""What models say, in fewer and longer pieces the more of them speak at once.

Each event of a stream costs its SDK and pydantic-ai about a millisecond, whatever it says, and
models say each token in one of its own. So a stream is read and told only so often: what comes
between waits in the system's buffers, where it costs nothing, and neighbours that go on with the
same text are told as one.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import httpx2
from pydantic_core import from_json

# Seconds from one piece of a reply to the next, for each that is heard in this process just now:
# alone, no token of an ordinary model waits; of fifty, each tells twice a second. So a process
# spends about a tenth of its time on pieces, and has the rest for who waits for a first word.
PAUSE = 0.01
# Seconds that a stream is given to hand over what had come, once it is read again.
LINGER = 0.002
# Where servers put text.
TEXTS = ("content", "reasoning_content", "reasoning")
# The last event of a stream.
DONE = b"data: [DONE]"
# Between two events.
BLANK_LINE = re.compile(rb"\r?\n\r?\n")

_heard: set["Pieces"] = set()


async def in_pieces(response: httpx2.Response) -> None:
    """A hook for the responses of an HTTP client: streams of events come in pieces."""
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    if is_stream and "content-encoding" not in response.headers:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Pieces(response.stream)


class Pieces(httpx2.AsyncByteStream):
    """`stream`, a stream of events, whatever its chunks are, in chunks of whole events."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._came: list[bytes] = []
        # Whether it is read, whether what comes is told at once, and whether there is something.
        self._open = asyncio.Event()
        self._open.set()
        self._listens = True
        self._bell = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None
        self._told = self._tell()

    def __aiter__(self) -> AsyncIterator[bytes]:
        # One for all: who has left off may go on, as the SDK does after the last event.
        return self._told

    async def _tell(self) -> AsyncIterator[bytes]:
        self._reading = asyncio.create_task(self._read())
        _heard.add(self)
        rest, waits = b"", False
        while not self._reading.done() or self._came:
            if waits and not self._reading.done():
                self._pause()
            await self._bell.wait()
            if not self._reading.done():
                self._bell.clear()
            *events, rest = BLANK_LINE.split(rest + b"".join(self._came))
            self._came.clear()
            for event, speaks in _joined(events):
                waits = (waits or speaks) and event != DONE
                yield event + b"\n\n"
        if rest:
            yield rest
        await self._reading

    async def _read(self) -> None:
        try:
            async for chunk in self._stream:
                self._came.append(chunk)
                self._ring()
                await self._open.wait()
        finally:
            self._ring()

    # By timers, and not by sleeping in `_tell`: whoever iterates over a stream does so through a
    # dozen iterators of the SDK and pydantic-ai, each of which is gone through at each step.

    def _pause(self) -> None:
        self._open.clear()
        self._listens = False
        self._bell.clear()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PAUSE * len(_heard), self._read_on)

    def _read_on(self) -> None:
        self._open.set()
        self._timer = asyncio.get_running_loop().call_later(LINGER, self._listen)

    def _listen(self) -> None:
        self._listens = True
        if self._came or (self._reading and self._reading.done()):
            self._bell.set()

    def _ring(self) -> None:
        if self._listens:
            self._bell.set()

    async def aclose(self) -> None:
        _heard.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()
            # Whatever broke it: nobody listens any more.
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._stream.aclose()


class Event(NamedTuple):
    content: bytes
    # What it says beside its text. Equal in those that may be one.
    frame: object
    key: str = ""
    text: str = ""


def _joined(events: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """`events`, neighbours that go on with the same text as one, and whether each has text."""
    for _, group in groupby(map(_parsed, events), key=lambda event: (event.key, event.frame)):
        first, *more = group
        if not more:
            yield first.content, bool(first.key)
            continue
        said = json.loads(first.content.removeprefix(b"data:"))
        said["choices"][0]["delta"][first.key] += "".join(event.text for event in more)
        yield b"data: " + json.dumps(said).encode(), True


def _parsed(content: bytes) -> Event:
    """An event of OpenAI's chat completions that adds to a text and says nothing else, taken
    apart; any other is like no other.
    """
    opaque = Event(content, object())
    try:
        # A seventh of what json takes for bytes; each token is parsed here.
        said: dict[str, Any] = from_json(content.removeprefix(b"data:"))
        [choice] = said["choices"]
        delta = choice["delta"]
        [(key, text)] = [item for item in delta.items() if item[1] and item[0] != "role"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return opaque
    if key not in TEXTS or not isinstance(text, str):
        return opaque
    if choice.get("finish_reason") or choice.get("logprobs"):
        return opaque
    # Different in each event, and heeded by nobody.
    for passing in ("created", "obfuscation"):
        said.pop(passing, None)
    del delta[key]
    return Event(content, said, key, text)
