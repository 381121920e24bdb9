"""OpenTelemetry traces of requests, tasks, database queries and model calls.

Spans are named after routes, tasks and tables. They contain no addresses, statements or parameters.
This module is loaded only if OTEL_EXPORTER_OTLP_ENDPOINT is set. The other variables of the SDK
apply too.
"""

import re
import threading
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

from config.http.middleware import MAX_METHOD_CHARS, route

# The header of a Celery message that contains the span which enqueued the task.
TASK_HEADER = "strata_traceparent"
TABLE = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+"?(\w+)', re.IGNORECASE)

_propagator = TraceContextTextMapPropagator()
# A private tracer: with the global one, libraries would record the texts that they process.
_tracer: trace.Tracer = trace.NoOpTracer()
_start_lock = threading.Lock()


def trace_tasks() -> None:
    """Trace the tasks that this process enqueues, and those that a pool of processes runs."""
    signals.before_task_publish.connect(_add_task_header)
    signals.worker_process_init.connect(start_in_worker)


def start_in_worker(**_: Any) -> None:
    """Trace the tasks that this process runs."""
    provider = _start("worker")
    signals.task_prerun.connect(_start_task_span)
    signals.task_postrun.connect(_end_task_span)
    # A worker with a pool of threads sends the second signal.
    for signal in (signals.worker_process_shutdown, signals.worker_shutdown):
        # Not weak, because nothing else keeps a reference to the lambda.
        signal.connect(lambda **_: provider.shutdown(), weak=False)


def _start(component: str) -> TracerProvider:
    # Imported on demand, because this module may be loaded before the models.
    from chat import metrics

    global _tracer
    provider = TracerProvider(resource=Resource.create({"strata.part": component}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("strata")
    metrics.open_span = _span
    connection_created.connect(_trace_queries)
    return provider


@contextmanager
def _span(name: str, **attributes: str | int) -> Iterator[Callable[..., None]]:
    """Open a span, but not as the current one: a generator may end in another context."""
    span = _tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
    try:
        yield lambda **more: span.set_attributes(more)
    except BaseException as error:
        _set_error(span, error)
        raise
    finally:
        span.end()


def _set_error(span: Span, error: BaseException | None = None) -> None:
    # Only the class of the error, because its message may quote a user.
    span.set_status(Status(StatusCode.ERROR, type(error).__name__ if error else None))


class TracingMiddleware:
    """Traces each request, as part of the client's trace if the client sends one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with _request_span(request.method or "", request.headers) as set_result:
            response = self.get_response(request)
            set_result(route(request), response.status_code)
            return response


@contextmanager
def trace_asgi_request(route: str, scope: dict[str, Any]) -> Iterator[Callable[[Any], None]]:
    """Trace a request that does not reach Django, under the name `route`.

    Yields a function that must be called with each message of the response.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    with _request_span(scope["method"], headers) as set_result:

        def read_status(message: Any) -> None:
            if message["type"] == "http.response.start":
                set_result(route, message["status"])

        yield read_status


@contextmanager
def _request_span(method: str, headers: Mapping[str, str]) -> Iterator[Callable[[str, int], None]]:
    """Open a span. Yields a function that sets its route and status.

    The first request of a process starts tracing. Before, the process may still be forked.
    """
    with _start_lock:
        if isinstance(_tracer, trace.NoOpTracer):
            _start("web")
    method = method[:MAX_METHOD_CHARS]
    parent = _propagator.extract(headers)
    options = {"record_exception": False, "set_status_on_exception": False}
    with _tracer.start_as_current_span(method, parent, SpanKind.SERVER, **options) as span:  # type: ignore[arg-type]

        def set_result(route: str, status: int) -> None:
            span.update_name(f"{method} {route}")
            span.set_attribute("http.request.method", method)
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                _set_error(span)

        yield set_result


def _trace_queries(connection: Any, **_: Any) -> None:
    if _trace_query not in connection.execute_wrappers:
        connection.execute_wrappers.append(_trace_query)


def _trace_query(
    execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
) -> Any:
    """Trace a query if it belongs to a request or a task. Other queries run every second."""
    if not trace.get_current_span().is_recording():
        return execute(sql, params, many, context)
    text = str(sql)
    verb = text.split(None, 1)[0].upper()[:MAX_METHOD_CHARS] if text.strip() else ""
    table = TABLE.search(text)
    attributes = {"db.system.name": "postgresql", "db.operation.name": verb}
    if table:
        attributes["db.collection.name"] = table[1]
    with _span(f"{verb} {table[1] if table else ''}".strip(), **attributes):
        return execute(sql, params, many, context)


def _add_task_header(headers: dict[str, Any] | None = None, **_: Any) -> None:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    if headers is not None and "traceparent" in carrier:
        headers[TASK_HEADER] = carrier["traceparent"]


def _start_task_span(task: Task, **_: Any) -> None:
    parent = _propagator.extract({"traceparent": getattr(task.request, TASK_HEADER, None) or ""})
    span = _tracer.start_span(task.name, parent, SpanKind.CONSUMER)
    task.request.strata_span = span, context.attach(trace.set_span_in_context(span))


def _end_task_span(task: Task, state: str | None = None, **_: Any) -> None:
    span, token = getattr(task.request, "strata_span", (None, None))
    if span is None or token is None:
        return
    context.detach(token)
    if state != "SUCCESS":
        _set_error(span)
    span.end()
