"""The ASGI entry point: Django, and beside it MCP, whose SDK is an ASGI application of its own."""

import asyncio
import os
from typing import Any

from django.core.asgi import get_asgi_application

from config.bodies import BoundedBodies, Receive, Send
from config.logs.requests import logged
from config.metrics.requests import measured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django = get_asgi_application()


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
        await django(scope, receive, send)


application = BoundedBodies(dispatch)
