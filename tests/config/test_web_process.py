"""A web process that stops answers every request that was sent to it."""

import asyncio
import socket
from typing import Any

import pytest
import uvicorn
from django.core.management import CommandError

from config.runtime import web

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Application:
    """Answers 204, to `/slow` only when it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.slow_requests = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            self.slow_requests += 1
            await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


class Running:
    """A server in this thread. While a test does not await, the server does nothing."""

    def __init__(self) -> None:
        self.application = Application()
        self.listener = web.bound_socket(0)
        config = uvicorn.Config(
            self.application, lifespan="off", proxy_headers=False, log_config=None
        )
        self.server = web.Server(config, lambda: None)
        self.task = asyncio.create_task(self.server._serve([self.listener]))

    def connect(self, request: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.listener.getsockname())
        client.settimeout(0)
        client.sendall(request)
        return client

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.01)

    async def answer(self, client: socket.socket) -> bytes:
        async with asyncio.timeout(10):
            return await asyncio.get_running_loop().sock_recv(client, 4096)

    def stop(self) -> None:
        self.server.handle_exit(15, None)


@pytest.fixture
def run():
    """Runs a test of this class with a server that has started."""

    def run(test: Any) -> None:
        async def with_server() -> None:
            running = Running()
            await running.until(lambda: running.server.started)
            await test(running)
            async with asyncio.timeout(20):
                await running.task

        asyncio.run(with_server())

    return run


def test_connections_that_wait_are_answered(run):
    async def stop_before_they_are_accepted(running: Running) -> None:
        running.stop()
        clients = [running.connect(REQUEST) for _ in range(50)]
        answers = [await running.answer(client) for client in clients]
        assert all(answer.startswith(b"HTTP/1.1 204") for answer in answers)
        assert all(b"connection: close" in answer.lower() for answer in answers)

    run(stop_before_they_are_accepted)


def test_a_request_on_an_open_connection_is_answered(run):
    async def send_after_the_stop(running: Running) -> None:
        client = running.connect(REQUEST)
        assert b"connection: close" not in (await running.answer(client)).lower()
        running.stop()
        await running.until(lambda: not running.server.servers[0].is_serving())
        client.sendall(REQUEST)
        assert b"connection: close" in (await running.answer(client)).lower()

    run(send_after_the_stop)


def test_an_answer_in_progress_asks_the_client_to_close(run):
    async def stop_before_the_answer(running: Running) -> None:
        client = running.connect(REQUEST.replace(b"/ ", b"/slow ", 1))
        await running.until(lambda: running.application.slow_requests)
        running.stop()
        await running.until(lambda: not running.server.servers[0].is_serving())
        running.application.may_answer.set()
        assert b"connection: close" in (await running.answer(client)).lower()

    run(stop_before_the_answer)


def test_new_connections_are_refused_so_that_a_proxy_tries_another_process(run):
    async def connect_after_the_stop(running: Running) -> None:
        address = running.listener.getsockname()
        running.stop()
        await running.task
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)

    run(connect_after_the_stop)


def test_no_response_waits_for_an_acknowledgement(run):
    async def look_at_an_open_connection(running: Running) -> None:
        client = running.connect(REQUEST)
        await running.answer(client)
        [protocol] = running.server.server_state.connections
        connection = protocol.transport.get_extra_info("socket")
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        running.stop()

    run(look_at_an_open_connection)


def test_it_listens_on_an_ipv6_address():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with web.bound_socket(0, "::1") as listener:
        assert web.local_address(listener) == ("::1", listener.getsockname()[1])
    with web.bound_socket(0, "::") as listener:
        assert web.local_address(listener)[0] == "::1"


def test_a_number_that_is_no_port_is_refused():
    with pytest.raises(CommandError, match="0 to 65535"):
        web.bound_socket(65_536)


def test_an_empty_address_is_refused():
    with pytest.raises(CommandError, match="is empty"):
        web.bound_socket(0, "")


def test_an_address_of_another_machine_is_named():
    # From the block for documentation, RFC 5737.
    with pytest.raises(CommandError, match="^192.0.2.1 is not an address of this machine$"):
        web.bound_socket(0, "192.0.2.1")
