"""A web server of a single test that records requests and sends the given answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    # Seconds before the first byte, and between one byte of the body and the next.
    delay: float = 0
    drip: float = 0


class Receiver:
    """`requests` in the order of arrival. `reply` answers them, or is a function that makes one."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.reply: Reply | Callable[[Received], Reply] = Reply()

    def __enter__(self) -> "Receiver":
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def _take(self) -> None:
                # Python leaves it out for HTTP/1.0, and boto3 waits a second before each upload.
                if self.headers.get("Expect") == "100-continue":
                    self.handle_expect_100()
                length = int(self.headers.get("Content-Length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(length)
                if len(body) < length:
                    # The sender was killed after the headers.
                    return
                received = Received(self.command, self.path, headers, body)
                receiver.requests.append(received)
                reply = receiver.reply
                self._send(reply(received) if callable(reply) else reply)

            def _send(self, reply: Reply) -> None:
                time.sleep(reply.delay)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if not reply.drip:
                    self.wfile.write(reply.body)
                    return
                for byte in reply.body:
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.drip)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _take

            def log_message(self, *_) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_) -> None:
                """Whoever asked hung up, as tests want it."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.address = self._server.server_address[:2]
        self.url = f"http://127.0.0.1:{self.address[1]}"
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
