"""Clients of the REST API that leave when it suits them. No Django here."""

import asyncio
import json
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Literal
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import Request, urlopen

EVENTS = "text/event-stream"
JSON = "application/json"


class Api:
    """The API as its well-behaved client sees it."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def call(self, method: str, path: str, body: object = None, **headers: str):
        """The answer's JSON. Raises AssertionError for a status that is no success."""
        request_headers = {"Authorization": f"Bearer {self.token}", "Content-Type": JSON} | headers
        data = None if body is None else json.dumps(body).encode()
        http_request = Request(
            urljoin(f"{self.url}/api/v1/", path), data, request_headers, method=method
        )
        try:
            with urlopen(http_request, timeout=90) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            raise AssertionError((method, path, error.code, error.read()[:500])) from error

    def messages(self, session: str) -> list[dict]:
        """All messages of a session, in order."""
        messages, page = [], self.call("GET", f"sessions/{session}/messages/")
        while True:
            messages += page["results"]
            if not page["next"]:
                return messages
            page = self.call("GET", page["next"])


@dataclass
class Client:
    """Says `content` in a session, reads what comes, and leaves.

    It leaves after half of its request, after so many events of the stream (0: when all is sent),
    after so many seconds, or not before the end; with a closing or an aborted connection. What it
    saw until then is kept.
    """

    session: str
    content: str
    accept: Literal["text/event-stream", "application/json"] = EVENTS
    half: bool = False
    events: int | None = None
    seconds: float | None = None
    aborts: bool = False
    # What it saw: the message it was told was written, the words of the reply with the moments
    # they came (of time.monotonic), and the event at the end.
    message: dict | None = None
    words: list[tuple[float, str]] = field(default_factory=list)
    end: dict | None = None
    broken: bool = False

    @property
    def received_text(self) -> str:
        return "".join(text for _, text in self.words)

    def received_by(self, moment: float) -> str:
        return "".join(text for at, text in self.words if at <= moment)

    async def run(self, url: str, token: str) -> None:
        place = urlsplit(url)
        try:
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
        except ConnectionError:
            self.broken = True
            return
        try:
            async with asyncio.timeout(self.seconds):
                await self._talk(reader, writer, place.netloc, token)
        except TimeoutError:
            pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.broken = True
        finally:
            if self.aborts:
                # Reset and not closed: what is still under way is thrown away.
                linger = struct.pack("ii", 1, 0)
                handle = writer.get_extra_info("socket")
                handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
            writer.close()

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, token: str
    ) -> None:
        body = json.dumps({"content": self.content}).encode()
        head = (
            f"POST /api/v1/sessions/{self.session}/messages/ HTTP/1.1\r\nHost: {host}\r\n"
            f"Authorization: Bearer {token}\r\nAccept: {self.accept}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        writer.write(head + (body[: len(body) // 2] if self.half else body))
        await writer.drain()
        if self.half or self.events == 0:
            return
        if self.accept == JSON:
            await self._read_whole(reader)
        else:
            await self._read_events(reader)

    async def _read_whole(self, reader: asyncio.StreamReader) -> None:
        answer = await reader.read(-1)
        head, _, body = answer.partition(b"\r\n\r\n")
        if not body:
            raise ConnectionResetError
        assert b" 201 " in head.splitlines()[0], answer[:500]
        payload = json.loads(body)
        self.message, self.end = payload["message"], payload["reply"]

    async def _read_events(self, reader: asyncio.StreamReader) -> None:
        """Events as they come. Each arrives in a chunk of its own, whose framing is passed over."""
        status = await reader.readline()
        if not status:
            raise ConnectionResetError
        assert b" 200 " in status, status + await reader.read(500)
        kind, count = "", 0
        while line := await reader.readline():
            if line.startswith(b"event: "):
                kind = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                self._take(kind, json.loads(line[6:]))
                count += 1
                if self.end is not None or count == self.events:
                    return
        raise ConnectionResetError

    def _take(self, kind: str, data: dict) -> None:
        if kind == "message":
            self.message = data
        elif kind == "delta":
            self.words.append((time.monotonic(), data["text"]))
        else:
            self.end = data
