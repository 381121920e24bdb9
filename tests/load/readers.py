"""Hundreds of stream readers in one event loop of a separate process. No Django here."""

import asyncio
import json
import random
import subprocess
import sys
import time
from asyncio import Future, Transport
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.commands import ROOT
from tests.load.model_server import FIRST, PAUSE


@dataclass
class Figures:
    """What readers saw. `firsts` are the seconds from a question to its first word."""

    words: int = 0
    replies: int = 0
    dropped: int = 0
    firsts: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Hearing(asyncio.Protocol):
    """One answer as it comes. `tell` is given the kind, the id and the data of each event; each
    comes in a chunk of its own, whose framing is passed over.
    """

    def __init__(self, request: bytes, tell: Callable[[str, str, bytes], None]) -> None:
        self._request = request
        self._notify = tell
        self._rest, self._kind, self._id = b"", "", ""
        self.status = b""
        self.over: Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                self._notify(self._kind, self._id, line[6:])
            elif line.startswith(b"id: "):
                self._id = line[4:].decode()
            elif line.startswith(b"event: "):
                self._kind = line[7:].decode()
            elif line.startswith(b"HTTP/1.1 "):
                self.status = line[9:12]

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


class Strata:
    """What is asked of one web process or another, by a program with a token."""

    def __init__(self, url: str, token: str) -> None:
        place = urlsplit(url)
        self.host, self.port = place.hostname, place.port
        self._token = token

    def request(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        request_headers = {
            "Host": f"{self.host}:{self.port}",
            "Authorization": f"Bearer {self._token}",
            "Accept": "text/event-stream",
            "Connection": "close",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
        } | headers
        head = "".join(f"{name}: {value}\r\n" for name, value in request_headers.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content

    async def json(self, method: str, path: str, body: object = None) -> Any:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(self.request(method, f"/api/v1/{path}", body, Accept="application/json"))
        answer = await reader.read()
        writer.close()
        head, _, content = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 2"):
            raise ConnectionError(f"{method} {path}: {answer[:300]!r}")
        return json.loads(content)


class Reader:
    """Hears one reply to its end, and comes back to where it was when its line drops."""

    def __init__(self, strata: Strata, figures: Figures, drops: float = 0) -> None:
        """`drops` is the chance to lose the line, each second."""
        self._strata = strata
        self._figures = figures
        self._drops = drops
        self._position = ""
        self._ended = False
        self._began = 0.0
        self.words = 0
        self.final_event: Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def asks(self, session: str, content: str) -> None:
        """Says `content` in `session` and hears the reply, as long as the line holds: at least
        until what was said is acknowledged. Who loses it before would have to ask again.
        """
        path = f"/api/v1/sessions/{session}/messages/"
        await self._hears(
            self._strata.request("POST", path, {"content": content}), self.final_event
        )

    async def follows(self, reply: str) -> None:
        """Hears `reply`, or the rest of it, however often the line drops."""
        while not self._ended:
            place = {"Last-Event-ID": self._position} if self._position else {}
            path = f"/api/v1/messages/{reply}/stream/"
            await self._hears(self._strata.request("GET", path, **place))

    async def _hears(self, request: bytes, first: Future | None = None) -> None:
        """The line is not lost before `first`."""
        self._began = time.perf_counter()
        transport, hearing = await asyncio.get_running_loop().create_connection(
            lambda: Hearing(request, self._take), self._strata.host, self._strata.port
        )
        try:
            if first is not None:
                await asyncio.wait({first, hearing.over}, return_when=asyncio.FIRST_COMPLETED)
            async with asyncio.timeout(random.expovariate(self._drops) if self._drops else None):
                await hearing.over
        except TimeoutError:
            self._figures.dropped += 1
        else:
            if not self._ended:
                self._figures.wrong.append(f"ended with status {hearing.status.decode()}")
                self._ended = True
        finally:
            transport.abort()

    def _take(self, kind: str, id: str, data: bytes) -> None:
        self._position = id
        if kind == "delta":
            if not self.words:
                self._figures.firsts.append(time.perf_counter() - self._began)
            words = json.loads(data)["text"].count("word")
            self.words += words
            self._figures.words += words
        elif kind == "message":
            self.final_event.set_result(json.loads(data))
        else:
            self._ended = True
            if kind == "error":
                self._figures.wrong.append(data.decode()[:300])


class Unremembering:
    """Asks the model itself, without Strata between."""

    def __init__(self, url: str, figures: Figures) -> None:
        place = urlsplit(url)
        self._host, self._port = place.hostname, place.port
        body = json.dumps({"stream": True, "messages": []}).encode()
        head = f"POST {place.path}/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        self._request = head.encode() + body
        self._figures = figures

    async def asks(self) -> None:
        began, words = time.perf_counter(), 0
        ended = asyncio.get_running_loop().create_future()

        def take(kind: str, id: str, data: bytes) -> None:
            nonlocal words
            if data.startswith(b"[DONE]"):
                ended.set_result(None)
            elif b"word" in data:
                if not words:
                    self._figures.firsts.append(time.perf_counter() - began)
                words += 1
                self._figures.words += 1

        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: Hearing(self._request, take), self._host, self._port
        )
        await ended
        transport.close()
        self._figures.replies += 1


@dataclass(frozen=True)
class Crowd:
    """Who talks for how long: in each session somebody asks again and again, and so many others
    listen. `drops` is each reader's chance to lose the line, each second. Without web processes
    the model is asked itself.
    """

    seconds: float
    words: int
    model: str = ""
    webs: Sequence[str] = ()
    token: str = ""
    sessions: Sequence[str] = ()
    askers: int = 0
    listeners: int = 0
    drops: float = 0

    async def talks(self) -> Figures:
        """Everybody begins at a moment of their own, within the time that a reply takes. What is
        heard counts when all have begun.
        """
        figures = Figures()
        first_item = FIRST + PAUSE * self.words
        people = self.sessions or range(self.askers)
        until = time.monotonic() + first_item + self.seconds
        tasks = [
            asyncio.create_task(
                self._talks(figures, session, first_item * number / len(people), until)
            )
            for number, session in enumerate(people)
        ]
        await asyncio.sleep(first_item)
        figures.words, figures.firsts = 0, []
        await asyncio.sleep(self.seconds)
        # Those who have begun hear the end, of which nothing is measured.
        words, firsts = figures.words, list(figures.firsts)
        await asyncio.gather(*tasks)
        figures.words, figures.firsts = words, firsts
        return figures

    async def _talks(self, figures: Figures, session: Any, after: float, until: float) -> None:
        await asyncio.sleep(after)
        while time.monotonic() < until:
            if self.webs:
                await self._talk(figures, session)
            else:
                await Unremembering(self.model, figures).asks()

    async def _talk(self, figures: Figures, session: str) -> None:
        """One question in `session`, answered to whoever asked and to those who listen."""

        def reader() -> Reader:
            return Reader(Strata(random.choice(self.webs), self.token), figures, self.drops)

        readers = [reader() for _ in range(1 + self.listeners)]
        request_task = asyncio.create_task(readers[0].asks(session, "How long does build 7 take?"))
        if self.listeners or self.drops:
            await asyncio.wait(
                {request_task, readers[0].final_event}, return_when=asyncio.FIRST_COMPLETED
            )
            reply = await self._reply(session)
            await asyncio.gather(*(element.follows(reply) for element in readers[1:]))
            await request_task
            await readers[0].follows(reply)
        await request_task
        for item in readers:
            figures.replies += 1
            if item.words != self.words:
                figures.wrong.append(f"heard {item.words} of {self.words} words")

    async def _reply(self, session: str) -> str:
        web = Strata(random.choice(self.webs), self.token)
        path = f"sessions/{session}/messages/?ordering=-seq&role=assistant"
        id: str = (await web.json("GET", path))["results"][0]["id"]
        return id


def start(crowd: Crowd) -> subprocess.Popen:
    """The crowd in a process of its own; `figures` waits for what it saw."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.load.readers"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    json.dump(asdict(crowd), process.stdin)
    process.stdin.close()
    return process


def figures(process: subprocess.Popen) -> Figures:
    assert process.stdout is not None
    output = process.stdout.read()
    assert process.wait() == 0
    return Figures(**json.loads(output))


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(Crowd(**json.load(sys.stdin)).talks()))))
