"""Each request has an id, which its lines, its tasks and its answer carry."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import uuid4

import structlog
from asgiref.sync import SyncToAsync
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject
from django_structlog.middlewares import RequestMiddleware

HEADER = "X-Request-ID"
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# Asked every few seconds, by machines.
OFTEN = ("healthz", "readyz", "metrics")
LONGEST_METHOD = 10

log = structlog.get_logger(__name__)


def request_id(given: str | None) -> str:
    """`given`, as a proxy or a program names the request, if it may stand in a line; else a new
    one.
    """
    return given if given and WELL_FORMED.fullmatch(given) else str(uuid4())


def route(request: HttpRequest) -> str:
    """The pattern that the address fits, which is one of a few, and names nobody."""
    match = getattr(request, "resolver_match", None)
    return f"/{match.route}" if match else "none"


class Logged(RequestMiddleware):
    """django-structlog's, without what may quote somebody: the address, the browser's name."""

    async_capable = False

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            return cast(HttpResponse, super().__call__(request))
        finally:
            # The thread serves others next, unless it was made for this request, whose stream goes
            # on in its context.
            if SyncToAsync.thread_sensitive_context.get(None) is None:
                structlog.contextvars.clear_contextvars()

    def prepare(self, request: HttpRequest) -> None:
        structlog.contextvars.clear_contextvars()
        made: Any = request
        made.id, made.began = request_id(request.headers.get(HEADER)), time.perf_counter()
        structlog.contextvars.bind_contextvars(request_id=made.id)

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        made: Any = request
        response[HEADER] = made.id
        self.bind_user_id(request)
        match = request.resolver_match
        tell = log.debug if match and match.url_name in OFTEN else log.info
        tell(
            "request_finished",
            request=self.format_request(request),
            code=response.status_code,
            duration_ms=round((time.perf_counter() - made.began) * 1000, 1),
        )

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{(request.method or '')[:LONGEST_METHOD]} {route(request)}"

    @staticmethod
    def bind_user_id(request: HttpRequest) -> None:
        """Whoever is known by now. Nobody is looked up for it."""
        user: Any = request.__dict__.get("_cached_user") or request.__dict__.get("user")
        # Django's own is looked up when it is first asked for something.
        if user is not None and type(user) is not SimpleLazyObject and user.pk is not None:
            structlog.contextvars.bind_contextvars(user_id=user.pk)


@contextmanager
def logged(scope: dict[str, Any], route: str) -> Iterator[Callable[[Any], Any]]:
    """For what Django does not answer: inside, the request of `scope` is, and what is given out
    puts its id into the messages of the answer. `route` is what its line names.
    """
    structlog.contextvars.clear_contextvars()
    given = dict(scope["headers"]).get(HEADER.lower().encode(), b"")
    id, began, code = request_id(given.decode("latin-1")), time.perf_counter(), 500
    structlog.contextvars.bind_contextvars(request_id=id)

    def identified(message: dict[str, Any]) -> dict[str, Any]:
        nonlocal code
        if message["type"] != "http.response.start":
            return message
        code = message["status"]
        named = (HEADER.lower().encode(), id.encode())
        return message | {"headers": [*message.get("headers", ()), named]}

    try:
        yield identified
    finally:
        took = round((time.perf_counter() - began) * 1000, 1)
        asked = f"{scope['method'][:LONGEST_METHOD]} {route}"
        log.info("request_finished", request=asked, code=code, duration_ms=took)
