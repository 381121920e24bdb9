"""One look a second at the database for everything that this process waits for.

No LISTEN: it does not pass a transaction pooler, and takes a connection of its own.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

from chat.admission import Grant, withdrawn
from chat.database import in_thread
from chat.metrics import STREAMS
from chat.models import Message, Session

log = logging.getLogger(__name__)

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
    # Grants that hold no more.
    withdrawn: frozenset[Grant] = frozenset()


class Poll:
    """The watched sessions and replies of one event loop, the readers of its streams, and the task
    that looks at them.
    """

    def __init__(self) -> None:
        self.sessions: Counter[UUID] = Counter()
        self.replies: Counter[UUID] = Counter()
        self.stoppable: Counter[UUID] = Counter()
        self._admitted: dict[Grant, set[asyncio.Event]] = {}
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

    @contextmanager
    def admitting(self, grant: Grant) -> Iterator[asyncio.Event]:
        """Inside the block, the event is set when a look finds that `grant` holds no more."""
        closed = asyncio.Event()
        self._admitted.setdefault(grant, set()).add(closed)
        self._go_on()
        try:
            with STREAMS.track_inprogress():
                yield closed
        finally:
            self._admitted[grant].discard(closed)
            if not self._admitted[grant]:
                del self._admitted[grant]

    async def look(self) -> Seen:
        """What the next look finds; at most an interval away."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        self._go_on()
        return await asyncio.shield(self._next)

    def _go_on(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_regularly())

    async def _look_regularly(self) -> None:
        while self.sessions or self.replies or self.stoppable or self._admitted:
            await asyncio.sleep(INTERVAL)
            waiting, self._next = self._next, None
            try:
                seen = await in_thread(
                    look_once,
                    list(self.sessions),
                    list(self.replies),
                    list(self.stoppable),
                    list(self._admitted),
                )
            except BaseException as error:
                if waiting is not None and not waiting.done():
                    waiting.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                # Those who wait are told; whether readers may go on listening is asked again.
                log.warning("look_failed cause=%r", error)
                continue
            for grant in seen.withdrawn:
                for closed in self._admitted.get(grant, ()):
                    closed.set()
            if waiting is not None and not waiting.done():
                waiting.set_result(seen)


_polls: WeakKeyDictionary[asyncio.AbstractEventLoop, Poll] = WeakKeyDictionary()


def poll() -> Poll:
    """The one poll of the running event loop."""
    return _polls.setdefault(asyncio.get_running_loop(), Poll())


def look_once(
    sessions: list[UUID], replies: list[UUID], stoppable: list[UUID], grants: list[Grant]
) -> Seen:
    """At most six queries, however much is watched."""
    versions = Session.objects.filter(pk__in=sessions).values_list("pk", "version")
    texts = Message.objects.filter(pk__in=replies, deleted_at=None).values_list(
        "pk", "text", "status"
    )
    stops = Message.objects.filter(pk__in=stoppable, stop_requested=True)
    return Seen(
        versions=dict(versions) if sessions else {},
        replies={pk: (text, status) for pk, text, status in texts} if replies else {},
        stops=frozenset(stops.values_list("pk", flat=True)) if stoppable else frozenset(),
        withdrawn=withdrawn(grants),
    )
