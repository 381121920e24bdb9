"""Requests by the names of their routes, under the names that django-prometheus gives them."""

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


class Requests(Metrics):
    """Those of django-prometheus that tell something here."""

    def register(self) -> None:
        self.latency = self.register_metric(
            Histogram,
            "django_http_requests_latency_seconds_by_view_method",
            "Seconds until the answer, or its stream, began.",
            ["view", "method"],
            buckets=PROMETHEUS_LATENCY_BUCKETS,
            namespace=NAMESPACE,
        )
        self.responses = self.register_metric(
            Counter,
            "django_http_responses_total_by_status_view_method",
            "Answers by status, route and method.",
            ["status", "view", "method"],
            namespace=NAMESPACE,
        )

    def observe(self, view: str, method: str | None, status: int, began: float) -> None:
        # A client may call a method as it likes.
        known = method if method in METHODS else OTHER
        self.latency.labels(view, known).observe(time.perf_counter() - began)
        self.responses.labels(str(status), view, known).inc()


def view_name(request: HttpRequest) -> str:
    match = getattr(request, "resolver_match", None)
    return (match.view_name if match else "") or UNNAMED


class Measured:
    """A middleware that counts each request and its answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.requests: Requests = Requests.get_instance()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = self.get_response(request)
        self.requests.observe(view_name(request), request.method, response.status_code, began)
        return response


@contextmanager
def measured(view: str, scope: dict[str, Any]) -> Iterator[Callable[[Any], None]]:
    """For what Django does not answer: inside, the request of `scope` is, and what is given out
    is told each message of the answer.
    """
    began, status = time.perf_counter(), 500

    def hear(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    try:
        yield hear
    finally:
        Requests.get_instance().observe(view, scope["method"], status, began)
