"""ASGI entry point: routes requests to Django or to the MCP server, another ASGI application."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from typing import IO, Any

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from config.http.body_limit import BodyLimitMiddleware, Receive, Scope, Send, error_application
from config.http.middleware import observe_asgi_request
from config.runtime import preload, watchdog
from projects.core.errors import DomainError

# The maximum time that a thread keeps the interpreter while another waits for it. With Python's
# default of 0.005, each database response would wait that long for the thread that streams replies.
SWITCH_INTERVAL_S = 0.001

# The last parts of paths to which the response may be a reply, in pages and APIs.
REPLY_PATHS = ("/messages", "/regenerate", "/rerun", "/chat/completions")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
watchdog.dump_stacks_on_signal()
sys.setswitchinterval(SWITCH_INTERVAL_S)
django.setup(set_prefix=False)


class SingleThreadHandler(ASGIHandler):
    """ASGI handler that runs a whole request in one call in a thread.

    Django's own handler switches between threads at each step of each middleware, and before and
    after the request. The switches together take longer than many views.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request, until its client disconnects."""
        try:
            body_file = await self.read_body(receive)
        except RequestAborted:
            return
        with closing(body_file):
            scope = _with_content_length(scope, body_file)
            set_script_prefix(get_script_prefix(scope))
            tasks = [
                asyncio.create_task(self.listen_for_disconnect(receive)),
                asyncio.create_task(self.answer(scope, body_file, send)),
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError, RequestAborted):
                    await task

    async def answer(self, scope: Scope, body_file: IO[bytes], send: Send) -> None:
        request, refusal = self.create_request(scope, body_file)
        response = refusal if request is None else await self.run_get_response(request)
        assert response is not None
        try:
            await self.send_response(response, send)
        finally:
            if not response.closed:
                await sync_to_async(response.close)()

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path.rstrip("/")
        if request.method != "POST" or not path.endswith(REPLY_PATHS):
            return await self.respond(request)
        from chat.conversations.admission import admitted

        async with admitted():
            return await self.respond(request)

    @sync_to_async
    def respond(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response. Unless it is a stream, its database connection is free again."""
        request_started.send(sender=type(self), scope=request.scope)  # type: ignore[attr-defined]
        response = self.get_response(request)
        if not response.streaming:
            response.close()
        return response


def _with_content_length(scope: Scope, body_file: IO[bytes]) -> Scope:
    """Return `scope` with the length of the body, for a body that was sent in chunks.

    The parsers of Django and of Django REST framework ignore a body without a length.
    """
    size = body_file.seek(0, os.SEEK_END)
    body_file.seek(0)
    if not size or any(name == b"content-length" for name, _value in scope["headers"]):
        return scope
    return {**scope, "headers": [*scope["headers"], (b"content-length", b"%d" % size)]}


django_application = SingleThreadHandler()


@contextmanager
def _observed(view: str, route: str, scope: Scope, send: Send) -> Iterator[Send]:
    """Log, measure and trace a response that does not come from Django."""
    with _traced(route, scope) as trace, observe_asgi_request(view, route, scope) as add_request_id:

        async def observed_send(message: Any) -> None:
            trace(message)
            await send(add_request_id(message))

        yield observed_send


def _traced(route: str, scope: Scope) -> AbstractContextManager[Callable[[Any], None]]:
    if not settings.TRACES:
        return nullcontext(lambda message: None)
    # Imported on demand, because its packages are optional.
    from config.observability.tracing import trace_asgi_request

    return trace_asgi_request(route, scope)


def _mcp_application() -> Any:
    # Imported at the first request, because the SDK takes a second and the middleware needs Django.
    from config.http.asgi_middleware import SecurityASGIMiddleware
    from memory.api.mcp import server

    return SecurityASGIMiddleware(server.application)


async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass /mcp to the MCP server, and all other requests to Django."""
    preload.start()
    path = scope.get("path", "").rstrip("/")
    if scope["type"] == "http" and path == "/mcp":
        mcp = await asyncio.to_thread(_mcp_application)
        with _observed("mcp", path, scope, send) as observed_send:
            await mcp(scope, receive, observed_send)
    else:
        await django_application(scope, receive, send)


async def refuse_body(scope: Scope, receive: Receive, send: Send, error: DomainError) -> None:
    """Respond with `error` to a request whose body is not accepted, without calling Django."""
    from config.http.asgi_middleware import SecurityASGIMiddleware

    with _observed("none", "none", scope, send) as observed_send:
        await SecurityASGIMiddleware(error_application(error))(scope, receive, observed_send)


application = BodyLimitMiddleware(dispatch, refuse_body)
