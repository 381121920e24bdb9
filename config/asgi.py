"""The ASGI entry point: Django, and beside it MCP, whose SDK is an ASGI application of its own."""

import asyncio
import os
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler

from config.bodies import BoundedBodies, Receive, Send
from config.logs.requests import logged
from config.metrics.requests import measured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
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


def _mcp() -> Any:
    # Imported when first asked for: its SDK takes a second. What guards it needs Django set up.
    from config.guarded import Guarded
    from memory.mcp import door

    return Guarded(door.application)


async def dispatch(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "http" and scope["path"].rstrip("/") == "/mcp":
        mcp = await asyncio.to_thread(_mcp)
        with measured("mcp", scope) as hear, logged(scope) as identified:

            async def answer(message: Any) -> None:
                hear(message)
                await send(identified(message))

            await mcp(scope, receive, answer)
    else:
        await pages(scope, receive, send)


application = BoundedBodies(dispatch)
