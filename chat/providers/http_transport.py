"""HTTP connections to model servers through aiohttp, for clients of httpx2.

httpx2's own connections parse each chunk of a stream in Python. That took 15 ms of processor time
per reply of 100 words, aiohttp's parser in C takes 4.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from errno import EHOSTUNREACH
from ipaddress import ip_address
from socket import AF_INET, AddressFamily
from typing import Any

import aiohttp
import httpx2
from aiohttp.abc import ResolveResult
from yarl import URL

from projects.core.outbound_http import OutboundFailure, is_allowed_address, trusted_certificates

# httpx2's limit for all header lines together, here for each line.
MAX_HEADER_BYTES = 100 * 1024
# aiohttp must not add these headers. httpx2 sends those that are wanted.
NO_DEFAULT_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

# The first class that an error belongs to decides.
ERRORS: tuple[tuple[type[BaseException], type[httpx2.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx2.ConnectTimeout),
    (aiohttp.SocketTimeoutError, httpx2.ReadTimeout),
    (TimeoutError, httpx2.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx2.ConnectError),
    (aiohttp.ServerFingerprintMismatch, httpx2.ConnectError),
    (aiohttp.ServerDisconnectedError, httpx2.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx2.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx2.RemoteProtocolError),
    (aiohttp.InvalidURL, httpx2.UnsupportedProtocol),
    (aiohttp.ClientError, httpx2.ReadError),
    (OSError, httpx2.ReadError),
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise httpx2's errors in place of aiohttp's."""
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        translated = next(to for kind, to in ERRORS if isinstance(error, kind))
        raise translated(str(error)) from error


class LoopConnector(aiohttp.TCPConnector):
    """Connections that end with their event loop. Otherwise, aiohttp would log errors about what
    was not closed.

    The models of a process keep their connections until its event loop ends.
    """

    def __init__(self, **options: Any) -> None:
        self._own_loop = asyncio.get_running_loop()
        super().__init__(**options)

    @property
    def closed(self) -> bool:
        return super().closed or self._own_loop.is_closed()

    def __del__(self, *args: Any) -> None:
        if not self._own_loop.is_closed():
            super().__del__(*args)


class PublicResolver(aiohttp.ThreadedResolver):
    """Resolves only hosts with allowed addresses. The connection uses these addresses, so that a
    changed answer of DNS cannot redirect it.
    """

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AF_INET
    ) -> list[ResolveResult]:
        results = await super().resolve(host, port, family)
        if not all(is_allowed_address(ip_address(result["host"])) for result in results):
            raise OSError(EHOSTUNREACH, str(OutboundFailure.INSIDE.label))
        return results


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of a client through one aiohttp session, which belongs to an event loop.

    Proxies are not supported. A guarded transport only connects to names on the public internet;
    its client must check URLs that contain an IP address.
    """

    def __init__(self, limits: httpx2.Limits, is_guarded: bool = False) -> None:
        self._limits = limits
        self._is_guarded = is_guarded
        self._session: aiohttp.ClientSession | None = None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = LoopConnector(
                limit=self._limits.max_connections or 0,
                keepalive_timeout=self._limits.keepalive_expiry,
                ssl=trusted_certificates(),
                resolver=PublicResolver() if self._is_guarded else None,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=NO_DEFAULT_HEADERS,
                auto_decompress=False,
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
            )
        return self._session

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        limits: dict[str, Any] = request.extensions.get("timeout", {})
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=limits.get("connect"), sock_read=limits.get("read")
        )
        content = await request.aread()
        headers = [
            (name.decode("ascii"), value.decode("latin-1"))
            for name, value in request.headers.raw
            # The content is sent in one piece.
            if name.lower() != b"transfer-encoding"
        ]
        with translated_errors():
            response = await self._open_session().request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=headers,
                data=content or None,
                timeout=timeout,
                allow_redirects=False,
            )
        return httpx2.Response(
            status_code=response.status,
            headers=list(response.raw_headers),
            stream=ResponseStream(response),
            extensions={"http_version": b"HTTP/1.1"},
        )

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class ResponseStream(httpx2.AsyncByteStream):
    """The body of a response. Each chunk is everything that has arrived.

    While the caller uses a chunk, the process reads nothing from the connection. What arrives
    meanwhile waits in the socket, and is received as one chunk.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content = self._response.content
        with translated_errors():
            try:
                while chunk := await content.readany():
                    connection = self._response.connection
                    # None after the end, because another request may already use the connection.
                    transport = connection.transport if connection else None
                    if transport is not None:
                        transport.pause_reading()
                    yield chunk
                    if transport is not None:
                        transport.resume_reading()
            except (aiohttp.ClientError, OSError):
                # After an error, no public method returns what arrived before it.
                if rest := content._read_nowait(-1):
                    yield rest
                raise

    async def aclose(self) -> None:
        # The connection is kept if the whole body was read.
        self._response.close()
