"""The demo model's process: it forwards to the model until nobody uses it."""

import asyncio
import socket
import subprocess
import sys

import pytest

from chat.providers import demo
from tests.server import ROOT


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data.upper())
    writer.close()


def test_it_forwards_both_ways_and_ends_when_nobody_uses_it(monkeypatch):
    monkeypatch.setattr(demo, "IDLE_S", 0.5)

    async def run() -> bytes:
        model = await asyncio.start_server(echo, "127.0.0.1", 0)
        listener = socket.create_server(("127.0.0.1", 0))
        port = model.sockets[0].getsockname()[1]
        serving = asyncio.create_task(demo.Forwarder(port).serve(listener))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"hello")
        answer = await reader.readexactly(5)
        # Although the connection is open.
        await asyncio.wait_for(serving, 20)
        writer.close()
        return answer

    assert asyncio.run(run()) == b"HELLO"


@pytest.mark.skipif(demo.unavailable_reason() is not None, reason="The model is not installed.")
def test_the_model_answers_when_it_is_loaded_and_its_process_ends_when_it_is_idle():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = (
            "import socket; from chat.providers import demo; demo.IDLE_S = 1;"
            f"demo.serve(socket.socket(fileno={listener.fileno()}))"
        )
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, cwd=ROOT, pass_fds=[listener.fileno()]) as process:
            with socket.create_connection(listener.getsockname(), timeout=60) as connection:
                connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                assert b" 200 " in connection.recv(100)
            assert process.wait(60) == 0
