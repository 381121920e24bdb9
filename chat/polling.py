"""One look a second at the database for everything that this process waits for.

No LISTEN: it does not pass a transaction pooler, and takes a connection of its own.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

from chat.database import in_thread
from chat.models import Message, Session

# Seconds between two looks.
INTERVAL = 1.0


@dataclass(frozen=True)
class Seen:
    """What the last look found, for what is being watched."""

    # By session: its version.
    versions: dict[UUID, int] = field(default_factory=dict)
    # By reply: its text so far and its status. One that is gone is missing.
    replies: dict[UUID, tuple[str, str]] = field(default_factory=dict)
    # Replies that somebody wants to end.
    stops: frozenset[UUID] = frozenset()


class Poll:
    """The watched sessions and replies of one event loop, and the task that looks at them."""

    def __init__(self) -> None:
        self.sessions: Counter[UUID] = Counter()
        self.replies: Counter[UUID] = Counter()
        self.stoppable: Counter[UUID] = Counter()
        self._next: asyncio.Future[Seen] | None = None
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, watched: Counter[UUID], key: UUID) -> Iterator[None]:
        """Inside the block, each look includes `key` of `watched`, one of the counters above."""
        watched[key] += 1
        try:
            yield
        finally:
            watched[key] -= 1
            if not watched[key]:
                del watched[key]

    async def look(self) -> Seen:
        """What the next look finds; at most an interval away."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_regularly())
        return await asyncio.shield(self._next)

    async def _look_regularly(self) -> None:
        while self.sessions or self.replies or self.stoppable:
            await asyncio.sleep(INTERVAL)
            waiting, self._next = self._next, None
            try:
                seen = await in_thread(
                    look_once, list(self.sessions), list(self.replies), list(self.stoppable)
                )
            except BaseException as error:
                # Those who wait are told, and the next of them starts the task again.
                if waiting is not None and not waiting.done():
                    waiting.set_exception(error)
                raise
            if waiting is not None and not waiting.done():
                waiting.set_result(seen)


_polls: WeakKeyDictionary[asyncio.AbstractEventLoop, Poll] = WeakKeyDictionary()


def poll() -> Poll:
    """The one poll of the running event loop."""
    return _polls.setdefault(asyncio.get_running_loop(), Poll())


def look_once(sessions: list[UUID], replies: list[UUID], stoppable: list[UUID]) -> Seen:
    """At most three queries, however much is watched."""
    versions = Session.objects.filter(pk__in=sessions).values_list("pk", "version")
    texts = Message.objects.filter(pk__in=replies).values_list("pk", "text", "status")
    stops = Message.objects.filter(pk__in=stoppable, stop_requested=True)
    return Seen(
        versions=dict(versions) if sessions else {},
        replies={pk: (text, status) for pk, text, status in texts} if replies else {},
        stops=frozenset(stops.values_list("pk", flat=True)) if stoppable else frozenset(),
    )
