"""A model server that carries hundreds of streams at once: `python -m tests.load.model_server`.

It speaks OpenAI's chat completions as tests.scripted does, always the same words at a fixed pace,
from one event loop: so that what is measured is Strata, and not what it listens to.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from asyncio import TimerHandle, Transport
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.commands import ROOT

# Seconds to the first word, and between two.
FIRST, PAUSE = 0.3, 0.05
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n\r\n"
STREAMED = HEAD % (b"text/event-stream", b"Transfer-Encoding: chunked")


def reply_text(words: int) -> str:
    """What it says: so many words."""
    return " ".join(f"word{number}" for number in range(words))


def _chunk(content: object) -> bytes:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    event = b"data: %s\n\n" % data
    return b"%x\r\n%s\r\n" % (len(event), event)


def _reply_chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    head = {"id": "chatcmpl-crowd", "object": "chat.completion.chunk", "created": 0}
    return head | {"model": "scripted", "choices": [choice]}


def _usage(words: int) -> dict[str, object]:
    counts = {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words}
    return _reply_chunk({}) | {"choices": [], "usage": counts}


class Lines:
    """Everything that it ever sends, made once: the role, each word, and the end."""

    def __init__(self, words: int) -> None:
        text = reply_text(words).split(" ")
        self.words = [
            _chunk(_reply_chunk({"content": f"{' ' if number else ''}{word}"}))
            for number, word in enumerate(text)
        ]
        self.words[0] = _chunk(_reply_chunk({"role": "assistant", "content": ""})) + self.words[0]
        ending = (_reply_chunk({}, "stop"), _usage(words), b"[DONE]")
        self.end = b"".join(map(_chunk, ending)) + b"0\r\n\r\n"
        message = {"role": "assistant", "content": "A title"}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        body = json.dumps(_usage(2) | {"object": "chat.completion", "choices": [choice]}).encode()
        self.whole = HEAD % (b"application/json", b"Content-Length: %d" % len(body)) + body


class Mouth(asyncio.Protocol):
    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._received = b""
        self._next: TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._next is not None:
            self._next.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not separator or len(body) < int(length or 0):
            return
        self._received = b""
        # A request without a body is for the list of models. Its answer has none of them.
        if not json.loads(body or b"{}").get("stream"):
            self._transport.write(self._lines.whole)
            return
        self._transport.write(STREAMED)
        loop = asyncio.get_running_loop()
        self._say(loop, 0, loop.time() + FIRST)

    def _say(self, loop: asyncio.AbstractEventLoop, number: int, at: float) -> None:
        """The word `number` at the time `at`, and then the next: late ones are made up for."""

        def say() -> None:
            if number == len(self._lines.words):
                self._transport.write(self._lines.end)
                return
            self._transport.write(self._lines.words[number])
            self._say(loop, number + 1, at + PAUSE)

        self._next = loop.call_at(at, say)


@dataclass(frozen=True)
class Speaking:
    base_url: str


@contextmanager
def speaker(words: int) -> Iterator[Speaking]:
    """The server in a process of its own, which answers with so many words."""
    command = [sys.executable, "-m", "tests.load.model_server", "--words", str(words)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Speaking(process.stdout.readline().strip())
        finally:
            process.terminate()


async def serve(words: int) -> None:
    lines = Lines(words)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Mouth(lines), "127.0.0.1", 0, backlog=1_000)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=400)
    asyncio.run(serve(parser.parse_args().words))
