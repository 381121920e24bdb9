"""The web process of `manage.py up`: uvicorn, but it sleeps until a request or signal arrives."""

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from socket import socket
from types import FrameType

import uvicorn
from uvicorn.server import ServerState

from config.runtime.commands import SHUTDOWN_S
from config.runtime.watchdog import until_heartbeat

Headers = list[tuple[bytes, bytes]]


def serve(listener: socket, heartbeat: Callable[[], None]) -> None:
    """Serve requests on `listener` until SIGTERM. Other processes may serve it too.

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
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    Server(config, heartbeat).run(sockets=[listener])


class DatedState(ServerState):
    """uvicorn's state, but its date is computed for each response."""

    @property
    def default_headers(self) -> Headers:
        return [(b"date", formatdate(usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, headers: Headers) -> None:
        pass


class Server(uvicorn.Server):
    """uvicorn's server without its main loop, which wakes up ten times a second."""

    def __init__(self, config: uvicorn.Config, heartbeat: Callable[[], None]) -> None:
        super().__init__(config)
        self._heartbeat = heartbeat
        self.server_state = DatedState()
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
