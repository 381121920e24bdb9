"""ASGI entry point: routes requests to Django or to the MCP server, another ASGI application."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from config.http.body_limit import BodyLimitMiddleware, Receive, Scope, Send, body_too_large
from config.http.middleware import observe_asgi_request
from config.runtime import preload, watchdog

# The maximum time that a thread keeps the interpreter while another waits for it. With Python's
# default of 0.005, each database response would wait that long for the thread that streams replies.
SWITCH_INTERVAL_S = 0.001

# The last parts of paths to which the response may be a reply, in pages and APIs.
REPLY_PATHS = ("/messages", "/regenerate", "/rerun", "/chat/completions")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
watchdog.dump_stacks_on_signal()
sys.setswitchinterval(SWITCH_INTERVAL_S)
with preload.garbage_collection_paused():
    django.setup(set_prefix=False)


class SingleThreadHandler(ASGIHandler):
    """ASGI handler that runs the middleware and the view of a request in one thread.

    Django's own handler switches between threads at each step of each middleware. The switches
    together take longer than many views.
    """

    _middleware_chain: Any

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        respond = sync_to_async(self._middleware_chain, thread_sensitive=True)

        async def respond_in_order(request: HttpRequest) -> HttpResponseBase:
            path = request.path.rstrip("/")
            if request.method != "POST" or not path.endswith(REPLY_PATHS):
                return await respond(request)
            from chat.conversations.admission import admitted

            async with admitted():
                return await respond(request)

        self._middleware_chain = respond_in_order


django_application = SingleThreadHandler()


@contextmanager
def _observed(view: str, route: str, scope: Scope, send: Send) -> Iterator[Send]:
    """Log, measure and trace a response that does not come from Django."""
    with (
        _traced(route, scope) as trace,
        observe_asgi_request(view, route, scope) as add_request_id,
    ):

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


async def refuse_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to a request whose body is too large, without calling Django."""
    from config.http.asgi_middleware import SecurityASGIMiddleware

    with _observed("none", "none", scope, send) as observed_send:
        await SecurityASGIMiddleware(body_too_large)(scope, receive, observed_send)


application = BodyLimitMiddleware(dispatch, refuse_body)
