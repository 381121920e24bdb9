"""Request metrics by route, under django-prometheus' names."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.http import HttpRequest, HttpResponse
from django_prometheus.conf import NAMESPACE, PROMETHEUS_LATENCY_BUCKETS
from django_prometheus.middleware import Metrics
from prometheus_client import Counter, Histogram

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OTHER, UNNAMED = "other", "<unnamed view>"


class RequestMetrics(Metrics):
    """The metrics of django-prometheus that Strata's dashboard uses."""

    def register(self) -> None:
        self.latency = self.register_metric(
            Histogram,
            "django_http_requests_latency_seconds_by_view_method",
            "Seconds until the response, or its stream, started.",
            ["view", "method"],
            buckets=PROMETHEUS_LATENCY_BUCKETS,
            namespace=NAMESPACE,
        )
        self.responses = self.register_metric(
            Counter,
            "django_http_responses_total_by_status_view_method",
            "Responses by status, route and method.",
            ["status", "view", "method"],
            namespace=NAMESPACE,
        )

    def observe(self, view: str, method: str | None, status: int, started_at: float) -> None:
        # A client may send any method; unknown ones share a label.
        label = method if method in METHODS else OTHER
        self.latency.labels(view, label).observe(time.perf_counter() - started_at)
        self.responses.labels(str(status), view, label).inc()


class MetricsMiddleware:
    """Measures each request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.metrics: RequestMetrics = RequestMetrics.get_instance()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started_at = time.perf_counter()
        response = self.get_response(request)
        match = getattr(request, "resolver_match", None)
        view = (match.view_name if match else "") or UNNAMED
        self.metrics.observe(view, request.method, response.status_code, started_at)
        return response


@contextmanager
def measure_asgi_request(view: str, scope: dict[str, Any]) -> Iterator[Callable[[Any], None]]:
    """Measure a request that Django does not answer.

    Yields a function to call with each message of the response.
    """
    started_at, status = time.perf_counter(), 500

    def read_status(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    try:
        yield read_status
    finally:
        RequestMetrics.get_instance().observe(view, scope["method"], status, started_at)
