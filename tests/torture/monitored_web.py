"""Strata under ASGI, and beside it an address that lists what its event loop has to do.

Only for tests: `uvicorn tests.torture.monitored_web:application`.
"""

import asyncio
import json

from config.asgi import application as strata

TASKS = "/torture/tasks"


async def application(scope, receive, send) -> None:
    if scope["type"] != "http" or scope["path"] != TASKS:
        await strata(scope, receive, send)
        return
    names = sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks())
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(names).encode()})
