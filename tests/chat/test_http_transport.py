"""Connections to model servers: each failure is one of httpx2's, and nothing is left open."""

import asyncio
import gc
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
from aiohttp.client_proto import ResponseHandler

from chat.providers import http_clients
from chat.providers.http_clients import LIMITS, limit_size, new_http_client
from chat.providers.http_transport import AiohttpTransport

Server = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Twice: a\r\nX-Twice: b\r\n\r\nok"


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    """A client and the address of a server that runs `server` for each connection."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await server(reader, writer)
        finally:
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(transport=AiohttpTransport(LIMITS), timeout=5) as client:
        yield client, f"http://127.0.0.1:{port}/v1"
    listening.close()


def answer(content: bytes, received: list[bytes] | None = None) -> Server:
    """A server that answers each request of a connection with `content`, and then closes it if that
    is not a whole response.
    """

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if received is not None:
                received.append(head)
            writer.write(content)
            await writer.drain()
            if content != WHOLE:
                return

    return server


def request(server: Server, **options: object) -> httpx2.Response:
    async def run() -> httpx2.Response:
        async with served(server) as (client, url):
            return await client.get(url, **options)  # type: ignore[arg-type]

    return asyncio.run(run())


def test_a_request_has_the_headers_of_the_client_and_no_others():
    received: list[bytes] = []
    response = request(answer(WHOLE, received), headers={"User-Agent": "Strata", "X-A": "b"})
    assert (response.status_code, response.content) == (200, b"ok")
    assert response.headers.get_list("x-twice") == ["a", "b"]
    [head] = received
    names = [line.partition(b":")[0].lower() for line in head.splitlines()[1:-1]]
    assert sorted(names) == sorted(
        [b"host", b"accept", b"accept-encoding", b"connection", b"user-agent", b"x-a"]
    )
    assert b"User-Agent: Strata" in head


def test_a_connection_is_used_again():
    connections = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await answer(WHOLE)(reader, writer)

    async def run() -> None:
        async with served(server) as (client, url):
            for _ in range(3):
                assert (await client.post(url, json={"stream": True})).content == b"ok"

    asyncio.run(run())
    assert len(connections) == 1


def test_a_redirect_is_not_followed():
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n"
    assert request(answer(moved)).status_code == 302


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"nonsense\r\n\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", httpx2.RemoteProtocolError),
    ],
)
def test_a_broken_answer_is_an_error_of_the_server(content, error):
    with pytest.raises(error):
        request(answer(content))


def test_text_that_arrived_before_the_connection_broke_is_read():
    received = bytearray()

    async def run() -> None:
        server = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        async with served(server) as (client, url), client.stream("GET", url) as response:
            # The rest and the end arrive before anything is read.
            await asyncio.sleep(0.1)
            async for chunk in response.aiter_raw():
                received.extend(chunk)

    with pytest.raises(httpx2.RemoteProtocolError):
        asyncio.run(run())
    assert received == b"half"


def test_while_a_chunk_is_used_nothing_is_read(monkeypatch):
    received: list[bytes] = []
    receive = ResponseHandler.data_received

    def record(self: ResponseHandler, data: bytes) -> None:
        received.append(data)
        receive(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", record)
    is_written = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n-")
        for number in range(10):
            await asyncio.sleep(0.01)
            writer.write(b"%d" % number)
        is_written.set()

    async def run() -> list[bytes]:
        chunks = []
        async with served(slow) as (client, url), client.stream("GET", url) as response:
            async for chunk in response.aiter_raw():
                chunks.append(chunk)
                await is_written.wait()
        return chunks

    assert asyncio.run(run()) == [b"-", b"0123456789"]
    # aiohttp itself passes on nothing when it resumes.
    assert [data for data in received if data][1:] == [b"0123456789"]


def test_a_server_that_is_silent_is_given_up():
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with pytest.raises(httpx2.ReadTimeout):
        request(silent, timeout=httpx2.Timeout(5, read=0.05))


@pytest.mark.parametrize(
    ("kind", "limit"), [(b"application/json", 1_000_000), (b"text/event-stream", 2_000_000)]
)
def test_an_endless_response_is_given_up(kind, limit, monkeypatch):
    monkeypatch.setattr(http_clients, "MAX_RESPONSE_BYTES", 1_000_000)
    monkeypatch.setattr(http_clients, "MAX_STREAM_BYTES", 2_000_000)
    monkeypatch.setattr(http_clients, "PAUSE_S", 0)
    received = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n" % kind)
        while not writer.is_closing():
            writer.write(b"data: %s\n\n" % (b"x" * 10_000))
            await writer.drain()

    async def run() -> None:
        nonlocal received
        async with (
            served(endless) as (_, url),
            new_http_client() as client,
            client.stream("GET", url) as response,
        ):
            async for chunk in response.aiter_bytes():
                received += len(chunk)

    with pytest.raises(httpx2.RemoteProtocolError, match="too large"):
        asyncio.run(run())
    assert 0.5 * limit < received <= limit


def test_a_compressed_response_is_refused():
    heads: list[bytes] = []
    body = gzip.compress(b"x" * 1_000_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)

    async def run() -> None:
        async with served(answer(head + body, heads)) as (_, url), new_http_client() as client:
            await client.get(url)

    with pytest.raises(httpx2.RemoteProtocolError, match="compressed"):
        asyncio.run(run())
    assert b"accept-encoding: identity" in heads[0].lower()


def test_nobody_listens():
    async def run() -> None:
        async with served(answer(WHOLE)) as (client, url):
            pass
        async with new_http_client() as client:
            await client.get(url)

    with pytest.raises(httpx2.ConnectError):
        asyncio.run(run())


def test_a_guarded_client_checks_the_addresses_that_it_connects_to(monkeypatch):
    # As if the name had a public address when the URL was checked, and an internal one afterwards.
    monkeypatch.setattr(http_clients, "check_url", lambda url: None)
    requests = []

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.read(10))

    async def run() -> None:
        async with served(record) as (_, url), new_http_client(is_guarded=True) as client:
            await client.get(url.replace("127.0.0.1", "localhost"))

    with pytest.raises(httpx2.ConnectError, match="not on the public internet"):
        asyncio.run(run())
    assert not requests


def test_a_server_without_tls_is_no_https_server():
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(WHOLE)

    async def run() -> None:
        async with served(plain) as (client, url):
            await client.get(url.replace("http:", "https:"))

    with pytest.raises(httpx2.ConnectError):
        asyncio.run(run())


def test_a_reader_that_leaves_closes_the_connection():
    async def run() -> bool:
        left = asyncio.Event()

        async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            writer.write(b"data: 1\n\n")
            await reader.read()
            left.set()

        async with served(endless) as (client, url):
            async with client.stream("GET", url) as response:
                assert await anext(response.aiter_raw()) == b"data: 1\n\n"
            async with asyncio.timeout(5):
                await left.wait()
        return left.is_set()

    assert asyncio.run(run())


def test_proxies_of_the_environment_are_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    client = new_http_client()
    assert not isinstance(client._transport, AiohttpTransport)
    assert client.event_hooks["response"] == [limit_size]


def test_connections_end_silently_with_their_event_loop(caplog):
    clients = []

    async def run() -> None:
        async with served(answer(WHOLE)) as (_, url):
            clients.append(new_http_client())
            assert (await clients[0].get(url)).content == b"ok"

    asyncio.run(run())
    clients.clear()
    gc.collect()
    assert "Unclosed" not in caplog.text
