"""The web process: uvicorn, but it sleeps until a request or signal arrives, and it answers all
requests that clients have sent before it stops.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from types import FrameType

import uvicorn
from django.core.management import CommandError
from uvicorn.server import ServerState

from config.runtime.watchdog import until_heartbeat

# The number of seconds for requests in progress when the process stops.
SHUTDOWN_S = 5
# How long a stopping process waits for requests on open connections that clients have sent before
# they could notice the stop.
LINGER_S = 0.5
# Longer than proxies keep their idle connections (nginx 60 s, Caddy 120 s). Otherwise a proxy could
# send a request on a connection that is being closed. A proxy does not repeat every request.
KEEP_ALIVE_S = 125

Headers = list[tuple[bytes, bytes]]


def serve(
    listener: socket.socket, heartbeat: Callable[[], None] = lambda: None, drain_s: int = SHUTDOWN_S
) -> None:
    """Serve requests on `listener` until SIGTERM, and those in progress for up to `drain_s` seconds
    longer. Other processes may serve it too.

    The event loop calls `heartbeat`.
    """
    from config.asgi import application

    config = uvicorn.Config(
        application,
        lifespan="off",
        # Proxy headers are only evaluated in one place, according to STRATA_TRUSTED_PROXIES.
        proxy_headers=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=drain_s,
    )
    Server(config, heartbeat).run(sockets=[listener])


def bound_socket(port: int, host: str = "127.0.0.1") -> socket.socket:
    """Return a socket that is bound to this address. Raises `CommandError` if that is
    impossible.
    """
    if not host:
        # The socket would listen on all addresses.
        raise CommandError("The address to listen on is empty; for all of IPv4, use 0.0.0.0")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol: else asyncio does not set TCP_NODELAY on its connections, and each response
    # on an open connection waits for the acknowledgement of its headers, which takes 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # Ports of recently closed connections can be used.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except socket.gaierror as error:
        raise CommandError(f"{host} is not an address of this machine") from error
    except OverflowError as error:
        raise CommandError("A port is a number from 0 to 65535") from error
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise CommandError(f"{host} is not an address of this machine") from error
        raise CommandError(
            f"Port {port} cannot be used ({os.strerror(error.errno or 0)});"
            " choose another with --port or PORT"
        ) from error
    return bound


def local_address(listener: socket.socket) -> tuple[str, int]:
    """Return the host and port at which this machine reaches `listener`.

    If it listens on all addresses, the host is the local one.
    """
    host, port = listener.getsockname()[:2]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port


class DatedState(ServerState):
    """uvicorn's state, but its date is computed for each response."""

    stopping = False

    @property
    def default_headers(self) -> Headers:
        date = (b"date", formatdate(usegmt=True).encode())
        return [date, (b"connection", b"close")] if self.stopping else [date]

    @default_headers.setter
    def default_headers(self, headers: Headers) -> None:
        pass


class Server(uvicorn.Server):
    """uvicorn's server without its main loop, which wakes up ten times a second."""

    def __init__(self, config: uvicorn.Config, heartbeat: Callable[[], None]) -> None:
        super().__init__(config)
        self._heartbeat = heartbeat
        self.server_state: DatedState = DatedState()
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not self.should_exit:
            self._heartbeat()
            try:
                async with asyncio.timeout(until_heartbeat()):
                    await self._stopped.wait()
            except TimeoutError:
                pass

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop:
            self._loop.call_soon_threadsafe(self._stopped.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, but answer each request on a connection that the system has accepted.

        uvicorn resets the connections that wait for it, and those whose request it has not read.
        """
        loop = asyncio.get_running_loop()
        self.server_state.stopping = True
        waiting: list[socket.socket] = []
        for listener in sockets or ():
            loop.remove_reader(listener)
        # A connection that the loop has just accepted needs its server open.
        await asyncio.sleep(0)
        for listener in sockets or ():
            with suppress(OSError):
                while True:
                    waiting.append(listener.accept()[0])
        for server in self.servers:
            server.close()
        for connection in waiting:
            await loop.connect_accepted_socket(self._protocol, connection)
        for protocol in self.server_state.connections:
            if cycle := getattr(protocol, "cycle", None):
                cycle.default_headers = self.server_state.default_headers
        await asyncio.sleep(LINGER_S)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
