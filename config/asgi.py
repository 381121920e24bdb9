"""The ASGI entry point: Django, and beside it MCP, whose SDK is an ASGI application of its own."""

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

from config import garbage
from config.bodies import BoundedBodies, Receive, Scope, Send, too_large_answer
from config.logs.requests import logged
from config.metrics.requests import measured
from config.warming import warm

# Seconds after which a thread hands the interpreter to one that waits for it. With Python's own
# 0.005 each answer of the database waits as long for the thread of the growing replies.
SWITCH = 0.001

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
sys.setswitchinterval(SWITCH)
with garbage.none_while_loading():
    django.setup(set_prefix=False)


class InOneThread(ASGIHandler):
    """Django's, with the middleware and the view of a request in one thread. By itself it changes
    threads at each step of each middleware, which in all takes longer than many a view.
    """

    _middleware_chain: Any

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        self._middleware_chain = sync_to_async(self._middleware_chain, thread_sensitive=True)


pages = InOneThread()


@contextmanager
def _noted(view: str, request: str, scope: Scope, send: Send) -> Iterator[Send]:
    """`send`, for an answer that is not Django's: counted as `view`, logged and traced as
    `request`.
    """
    with (
        _traced(scope, request) as trace,
        measured(view, scope) as count,
        logged(scope, request) as identified,
    ):

        async def answer(message: Any) -> None:
            trace(message)
            count(message)
            await send(identified(message))

        yield answer


def _traced(scope: Scope, request: str) -> AbstractContextManager[Callable[[Any], None]]:
    if not settings.TRACES:
        return nullcontext(lambda message: None)
    # Its packages may not be installed.
    from config.tracing import traced

    return traced(scope, request)


def _mcp() -> Any:
    # Imported when first asked for: its SDK takes a second. What guards it needs Django set up.
    from config.guarded import Guarded
    from memory.mcp import door

    return Guarded(door.application)


async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
    warm()
    path = scope.get("path", "").rstrip("/")
    if scope["type"] == "http" and path == "/mcp":
        mcp = await asyncio.to_thread(_mcp)
        with _noted("mcp", path, scope, send) as answer:
            await mcp(scope, receive, answer)
    else:
        await pages(scope, receive, send)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a body that is too large, of which Django is not to hear."""
    from config.guarded import Guarded

    with _noted("none", "none", scope, send) as answer:
        await Guarded(too_large_answer)(scope, receive, answer)


application = BoundedBodies(dispatch, refuse)
