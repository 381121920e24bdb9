"""Middleware for response headers, URLs, languages, page rate limits, request logs and metrics.

The id of a request is in its log lines, in the log lines of its tasks, and in the X-Request-ID
header of its response.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast
from uuid import uuid4

import structlog
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.middleware.gzip import GZipMiddleware
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject
from django_structlog import signals
from django_structlog.middlewares import RequestMiddleware
from prometheus_client import Counter, Histogram

from config.http.error_pages import (
    PROGRAM_PATHS,
    domain_error,
    form_address_page,
    wants_json,
)
from projects.core.errors import LimitError
from projects.core.http.public_url import absolute_url
from projects.core.outages import as_outage

SECURITY_HEADERS = {
    # No page needs these features. Disabling them makes them unavailable to injected code too.
    "Permissions-Policy": ", ".join(
        f"{feature}=()"
        for feature in (
            *("accelerometer", "browsing-topics", "camera", "display-capture", "geolocation"),
            *("gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
        )
    ),
    # Other sites must not embed or run these resources.
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeadersMiddleware(MiddlewareMixin):
    """Adds headers that Django and django-csp do not set. Headers that a view has set are kept."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            # Otherwise the back button shows text that was forgotten in the meantime.
            response.headers.setdefault("Cache-Control", "no-store")
        return response


class PublicUrlMiddleware(MiddlewareMixin):
    """Makes `request.build_absolute_uri` return URLs below STRATA_URL, also in libraries."""

    def process_request(self, request: HttpRequest) -> None:
        vars(request)["build_absolute_uri"] = partial(absolute_url, request)


class PageCompressionMiddleware(GZipMiddleware):
    """Compresses pages, but neither streams nor responses to programs, where it costs more than it
    saves.

    The length of a compressed page reveals whether text that another site put into the request also
    occurs elsewhere on the page (https://breachattack.com). Therefore responses to requests from
    other sites are not compressed. Older browsers do not report the requesting site. Against
    such requests, Django adds random bytes and masks its CSRF tokens.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        is_foreign = request.headers.get("Sec-Fetch-Site") == "cross-site"
        if response.streaming or is_foreign or not is_page:
            return response
        return super().process_response(request, response)


class PageLocaleMiddleware(LocaleMiddleware):
    """Selects the language of pages like Django does. API responses are always in English."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith(PROGRAM_PATHS):
            translation.activate(settings.LANGUAGE_CODE)
            request.LANGUAGE_CODE = settings.LANGUAGE_CODE
        else:
            super().process_request(request)

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if request.path_info.startswith(PROGRAM_PATHS):
            return response
        return super().process_response(request, response)


class FormAddressMiddleware(MiddlewareMixin):
    """Replaces the empty response to a browser that opens the address of a form by a page."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if isinstance(response, HttpResponseNotAllowed) and not wants_json(request):
            response.content = form_address_page(request)
        return response


HEADER = "X-Request-ID"
VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# Views that machines request every few seconds. These requests are logged at DEBUG.
POLLED_VIEWS = ("healthz", "readyz", "metrics")
MAX_METHOD_CHARS = 10
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OTHER, UNNAMED = "other", "<unnamed view>"
# The same names as in django-prometheus, which existing dashboards use.
LATENCY = Histogram(
    "django_http_requests_latency_seconds_by_view_method",
    "Seconds until the response, or its stream, started.",
    ["view", "method"],
    buckets=settings.PROMETHEUS_LATENCY_BUCKETS,
)
RESPONSES = Counter(
    "django_http_responses_total_by_status_view_method",
    "Responses by status, route and method.",
    ["status", "view", "method"],
)

log = structlog.get_logger(__name__)


def request_id(header: str | None) -> str:
    """Return the id that a proxy or client sent, if it is valid; otherwise a new id."""
    return header if header and VALID_ID.fullmatch(header) else str(uuid4())


def route(request: HttpRequest) -> str:
    """Return the URL pattern that matched. It contains neither ids nor names."""
    match = getattr(request, "resolver_match", None)
    return f"/{match.route}" if match else "none"


def measure_request(view: str, method: str | None, status: int, started_at: float) -> None:
    # Unknown methods share a label, because a client may send any method.
    label = method if method in METHODS else OTHER
    LATENCY.labels(view, label).observe(time.perf_counter() - started_at)
    RESPONSES.labels(str(status), view, label).inc()


class RequestLogMiddleware(RequestMiddleware):
    """Logs and measures each request.

    This is django-structlog's middleware, but it does not log address and user agent, which
    identify a person.
    """

    async_capable = False

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            return cast(HttpResponse, super().__call__(request))
        finally:
            # Clear the log context before the thread serves another request. Keep it if the thread
            # belongs to this request, because the response may still be streaming.
            if SyncToAsync.thread_sensitive_context.get(None) is None:
                structlog.contextvars.clear_contextvars()

    def prepare(self, request: HttpRequest) -> None:
        structlog.contextvars.clear_contextvars()
        attributes: Any = request
        attributes.id = request_id(request.headers.get(HEADER))
        attributes.started_at = time.perf_counter()
        structlog.contextvars.bind_contextvars(request_id=attributes.id)

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        attributes: Any = request
        response[HEADER] = attributes.id
        self.bind_user_id(request)
        match = request.resolver_match
        is_polled = match and match.url_name in POLLED_VIEWS
        (log.debug if is_polled else log.info)(
            "request_finished",
            request=self.format_request(request),
            code=response.status_code,
            duration_ms=_milliseconds_since(attributes.started_at),
        )
        view = (match.view_name if match else "") or UNNAMED
        measure_request(view, request.method, response.status_code, attributes.started_at)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{(request.method or '')[:MAX_METHOD_CHARS]} {route(request)}"

    @staticmethod
    def bind_user_id(request: HttpRequest) -> None:
        """Bind the user's id if a view has already loaded the user. Takes no query."""
        user: Any = request.__dict__.get("_cached_user") or request.__dict__.get("user")
        # An unevaluated SimpleLazyObject would run a query.
        if user is not None and type(user) is not SimpleLazyObject and user.pk is not None:
            structlog.contextvars.bind_contextvars(user_id=user.pk)


@receiver(signals.bind_extra_request_failed_metadata)
def log_status_of_outage(
    exception: Exception, log_kwargs: dict[str, Any], **kwargs: object
) -> None:
    """Log the status of the response to an outage. The library logs 500 for all exceptions."""
    if outage := as_outage(exception):
        log_kwargs["code"] = outage.status


class PageRateLimitMiddleware(MiddlewareMixin):
    """Limits how often a user or, before sign-in, a network requests pages.

    Requests of programs have other limits.
    """

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        # Imported on demand, because config.asgi imports this module before models are loaded.
        from projects.rate_limits import count_page

        match = request.resolver_match
        is_polled = match is not None and match.url_name in POLLED_VIEWS
        if is_polled or request.path_info.startswith(PROGRAM_PATHS):
            return None
        try:
            count_page(request)
        except LimitError as error:
            return domain_error(request, error)
        return None


def _milliseconds_since(started_at: float) -> float:
    return round((time.perf_counter() - started_at) * 1000, 1)


@contextmanager
def observe_asgi_request(
    view: str, route: str, scope: dict[str, Any]
) -> Iterator[Callable[[Any], Any]]:
    """Log and measure a request that does not reach Django, under the names `view` and `route`.

    Yields a function that adds the request id to the messages of the response.
    """
    structlog.contextvars.clear_contextvars()
    header = dict(scope["headers"]).get(HEADER.lower().encode(), b"")
    id, started_at, code = request_id(header.decode("latin-1")), time.perf_counter(), 500
    structlog.contextvars.bind_contextvars(request_id=id)

    def add_request_id(message: dict[str, Any]) -> dict[str, Any]:
        nonlocal code
        if message["type"] != "http.response.start":
            return message
        code = message["status"]
        id_header = (HEADER.lower().encode(), id.encode())
        return message | {"headers": [*message.get("headers", ()), id_header]}

    try:
        yield add_request_id
    finally:
        request = f"{scope['method'][:MAX_METHOD_CHARS]} {route}"
        duration_ms = _milliseconds_since(started_at)
        log.info("request_finished", request=request, code=code, duration_ms=duration_ms)
        measure_request(view, scope["method"], code, started_at)
