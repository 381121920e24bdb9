"""Database work from asynchronous code."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a worker thread; its connection is back in the pool before this returns.

    Django's own bridge keeps a connection for as long as the request lives, which for a stream is
    minutes; and a reply outlives its request.
    """

    def run() -> T:
        try:
            return work(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)
