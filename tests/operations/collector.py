"""A collector of OpenTelemetry in this process, at the wire: OTLP over HTTP."""

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Span:
    name: str
    trace: str
    id: str
    parent: str
    about: dict[str, str]
    part: str


class Collector:
    """The server, from `with` to its end. `received` are the bodies as they came."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.collector = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.received: list[bytes] = []
        self.spans: list[Span] = []

    def __enter__(self) -> "Collector":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    def hear(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        assert path == "/v1/traces"
        self.received.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            part = _about(resource.resource)["strata.part"]
            for scope in resource.scope_spans:
                self.spans.extend(
                    Span(
                        name=span.name,
                        trace=span.trace_id.hex(),
                        id=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        about=_about(span),
                        part=part,
                    )
                    for span in scope.spans
                )


def _about(attributes) -> dict[str, str]:
    return {
        pair.key: pair.value.string_value or str(pair.value.int_value)
        for pair in attributes.attributes
    }


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.server.collector.hear(self.path, body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()
