"""Traces for OpenTelemetry: requests, tasks, the queries of both, and calls of models.

Spans are named after routes, tasks and tables: no address, no query's text and no parameter goes
out. Loaded only where OTEL_EXPORTER_OTLP_ENDPOINT is set; the SDK's other variables hold too.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery import Task, signals
from django.db.backends.signals import connection_created
from django.http import HttpRequest, HttpResponse
from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from config.logs.requests import LONGEST_METHOD, route
from projects import tracing

# Of a task: the span that it was started in.
HEADER = "strata_traceparent"
TABLE = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+"?(\w+)', re.IGNORECASE)

_propagator = TraceContextTextMapPropagator()
# Not the global one: libraries that find one there write down what they are given.
_tracer: trace.Tracer = trace.NoOpTracer()


def trace_tasks() -> None:
    """Traces the tasks that this process starts, and those that its workers run."""
    signals.before_task_publish.connect(_pass_on)
    signals.worker_process_init.connect(_start_worker)


def _start_worker(**_: Any) -> None:
    provider = _start("worker")
    signals.task_prerun.connect(_begin_task)
    signals.task_postrun.connect(_end_task)
    # Kept alive by the signal: it is there as long as the process.
    signals.worker_process_shutdown.connect(lambda **_: provider.shutdown(), weak=False)


def _start(part: str) -> TracerProvider:
    global _tracer
    provider = TracerProvider(resource=Resource.create({"strata.part": part}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("strata")
    tracing.collect_with(_span)
    connection_created.connect(_watch_queries)
    return provider


@contextmanager
def _span(name: str, **about: str | int) -> Iterator[tracing.Note]:
    """Not the current one: a generator may be ended elsewhere than it was begun."""
    made = _tracer.start_span(name, kind=SpanKind.CLIENT, attributes=about)
    try:
        yield lambda **more: made.set_attributes(more)
    except BaseException as error:
        _fail(made, error)
        raise
    finally:
        made.end()


def _fail(made: Span, error: BaseException | None) -> None:
    # Its message may quote somebody.
    made.set_status(Status(StatusCode.ERROR, type(error).__name__ if error else None))


class Traced:
    """A middleware: each request is a span, part of its sender's trace if they have one.

    Who has it serves requests, and is traced from then on.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        _start("web")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with _request(request.method or "", request.headers) as ended:
            response = self.get_response(request)
            ended(route(request), response.status_code)
            return response


@contextmanager
def traced(scope: dict[str, Any], route: str) -> Iterator[Callable[[Any], None]]:
    """For what Django does not answer: inside, the request of `scope` is, and what is given out
    is told each message of the answer. `route` is what its span is named after.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    with _request(scope["method"], headers) as ended:

        def hear(message: Any) -> None:
            if message["type"] == "http.response.start":
                ended(route, message["status"])

        yield hear


@contextmanager
def _request(method: str, headers: Mapping[str, str]) -> Iterator[Callable[[str, int], None]]:
    """A span, which is told the route and the status once both are known."""
    method = method[:LONGEST_METHOD]
    above = _propagator.extract(headers, getter=_HEADERS)
    quiet = {"record_exception": False, "set_status_on_exception": False}
    with _tracer.start_as_current_span(method, above, SpanKind.SERVER, **quiet) as made:  # type: ignore[arg-type]

        def ended(route: str, status: int) -> None:
            made.update_name(f"{method} {route}")
            made.set_attribute("http.request.method", method)
            made.set_attribute("http.route", route)
            made.set_attribute("http.response.status_code", status)
            if status >= 500:
                _fail(made, None)

        yield ended


class _Headers:
    def get(self, carrier: Any, key: str) -> list[str] | None:
        value = carrier.get(key)
        return None if value is None else [value]

    def keys(self, carrier: Any) -> list[str]:
        return list(carrier)


_HEADERS: Any = _Headers()


def _watch_queries(connection: Any, **_: Any) -> None:
    if _query not in connection.execute_wrappers:
        connection.execute_wrappers.append(_query)


def _query(execute: Callable[..., Any], sql: Any, params: Any, many: bool, about: Any) -> Any:
    """Only as part of something: what goes on by itself each second is no trace."""
    if not trace.get_current_span().is_recording():
        return execute(sql, params, many, about)
    text = str(sql)
    verb = text.split(None, 1)[0].upper()[:LONGEST_METHOD] if text.strip() else ""
    table = TABLE.search(text)
    attributes = {"db.system.name": "postgresql", "db.operation.name": verb}
    if table:
        attributes["db.collection.name"] = table[1]
    with _span(f"{verb} {table[1] if table else ''}".strip(), **attributes):
        return execute(sql, params, many, about)


def _pass_on(headers: dict[str, Any] | None = None, **_: Any) -> None:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    if headers is not None and "traceparent" in carrier:
        headers[HEADER] = carrier["traceparent"]


def _begin_task(task: Task, **_: Any) -> None:
    above = _propagator.extract({"traceparent": getattr(task.request, HEADER, None) or ""})
    made = _tracer.start_span(task.name, above, SpanKind.CONSUMER)
    task.request.strata_span = made, context.attach(trace.set_span_in_context(made))


def _end_task(task: Task, state: str | None = None, **_: Any) -> None:
    begun = getattr(task.request, "strata_span", None)
    if begun is None:
        return
    made, token = begun
    context.detach(token)
    if state != "SUCCESS":
        _fail(made, None)
    made.end()
