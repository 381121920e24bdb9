"""What is being said right now: replies under way in this process, and who listens to them.

A reply is a task of the process, not of the request that asked for it: it goes on when its reader
leaves, and any number of readers may follow it from any point.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from chat import replies
from chat.database import in_thread
from chat.models import FINAL, Message, Session, Status
from chat.options import Options
from chat.polling import poll
from chat.providers import Delta, Failed, Finished, ProviderError

# A reply whose process gave no sign of life for so long was cut off by that process's end.
SILENCE = timedelta(seconds=20)


Event = Delta | Finished | Failed


class Live:
    """A reply as it is being said here: its text so far, and a bell that rings when more came.

    How it ended is in `finished` or `failure`; in neither, when somebody ended it.
    """

    def __init__(self) -> None:
        self.text = ""
        self.done = False
        self.stopped = False
        self.finished: Finished | None = None
        self.failure: ProviderError | None = None
        self.task: asyncio.Task[None] | None = None
        self._bell = asyncio.Event()

    def hear(self, event: Event) -> None:
        if isinstance(event, Delta):
            self.text += event.text
            self._ring()
        elif isinstance(event, Finished):
            self.finished = event
        else:
            self.failure = event.error

    def finish(self) -> None:
        self.done = True
        self._ring()

    def stop(self) -> None:
        """Ends it here and now; what was said stays."""
        if self.task is not None and not self.stopped:
            self.stopped = True
            self.task.cancel()

    def _ring(self) -> None:
        self._bell.set()
        self._bell = asyncio.Event()

    @property
    def bell(self) -> asyncio.Event:
        """Rings once, when something is added or it ends. To miss nothing, take it first, then
        read, then wait.
        """
        return self._bell


_live: dict[UUID, Live] = {}
# The loop itself keeps only weak references to its tasks.
_tasks: set[asyncio.Task[None]] = set()


async def start(reply: Message, options: Options = Options()) -> Live:
    """Begins to say `reply` in this process and returns at once."""
    live = _live[reply.pk] = Live()
    events = replies.stream_reply(reply, lambda: live.stopped, options)
    live.task = _kept(_say(events, live, reply.pk))
    _kept(_heed_stops(reply.pk, live))
    return live


async def pass_on(events: AsyncIterator[Event]) -> Live:
    """Begins to hear `events`, which nobody keeps, and returns at once. Whoever asked for them ends
    them with `Live.stop` when they leave.
    """
    live = Live()
    live.task = _kept(_say(events, live))
    return live


def _kept(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


async def _say(events: AsyncIterator[Event], live: Live, reply_id: UUID | None = None) -> None:
    try:
        async for event in events:
            live.hear(event)
    except asyncio.CancelledError:
        if not live.stopped:
            raise
    finally:
        if reply_id is not None:
            _live.pop(reply_id, None)
        live.finish()


async def _heed_stops(reply_id: UUID, live: Live) -> None:
    """Ends the reply when a reader at another process wants it so."""
    looks = poll()
    with looks.watching(looks.stoppable, reply_id):
        while True:
            bell = live.bell
            if live.done:
                return
            look = asyncio.ensure_future(looks.look())
            ended = asyncio.ensure_future(bell.wait())
            await asyncio.wait({look, ended}, return_when=asyncio.FIRST_COMPLETED)
            if look.done() and not look.exception() and reply_id in look.result().stops:
                live.stop()
            look.cancel()
            ended.cancel()


async def stop(reply_id: UUID) -> None:
    """Asks the process that says a reply to end it, this one or another; what was said stays."""
    unfinished = Message.objects.unfinished().filter(pk=reply_id)
    await in_thread(unfinished.update, stop_requested=True)
    live = _live.get(reply_id)
    if live is not None:
        live.stop()


async def follow(reply_id: UUID, position: int = 0) -> AsyncIterator[Delta]:
    """The text of a reply from `position` (in characters) on, until the reply is final.

    A slow reader gets fewer, longer pieces: nothing is queued for it.
    """
    live = _live.get(reply_id)
    if live is None:
        async for delta in _follow_elsewhere(reply_id, position):
            yield delta
        return
    async for delta in heard(live, position):
        yield delta


async def heard(live: Live, position: int = 0) -> AsyncIterator[Delta]:
    """As `follow`, for what is being said here."""
    while True:
        bell = live.bell
        if len(live.text) > position:
            piece, position = live.text[position:], len(live.text)
            yield Delta(piece)
        elif live.done:
            return
        else:
            await bell.wait()


async def _follow_elsewhere(reply_id: UUID, position: int) -> AsyncIterator[Delta]:
    """As `follow`, for a reply of another process, read from what that one flushes."""
    rows = Message.objects.filter(pk=reply_id, deleted_at=None).values_list("text", "status")
    row = await in_thread(rows.first)
    looks = poll()
    with looks.watching(looks.replies, reply_id):
        while row is not None:
            text, status = row
            if len(text) > position:
                yield Delta(text[position:])
                position = len(text)
            if status in FINAL:
                return
            row = (await looks.look()).replies.get(reply_id)


async def watch(session_id: UUID, version: int) -> AsyncIterator[int]:
    """The session's version whenever it rises above `version`; ends when the session is gone."""
    rows = Session.objects.filter(pk=session_id).values_list("version", flat=True)
    current: int | None = await in_thread(rows.first)
    looks = poll()
    with looks.watching(looks.sessions, session_id):
        while current is not None:
            if current > version:
                version = current
                yield version
            current = (await looks.look()).versions.get(session_id)


async def settle() -> None:
    """Waits until every reply of this process is finished."""
    while _tasks:
        await asyncio.wait(set(_tasks))


def sweep_interrupted() -> int:
    """Ends the replies whose process died, with the text they had; returns how many."""
    # A sign of life from the future is from before the clock was set back.
    long_ago = Q(heartbeat_at__lt=Now() - SILENCE) | Q(heartbeat_at__gt=Now() + SILENCE)
    silent = Message.objects.unfinished().filter(long_ago)
    found = 0
    for reply in silent.select_related("session")[:1000]:
        reason = {"error": replies.SERVER_STOPPED}
        found += replies.finalise(reply, reply.text, Status.INTERRUPTED, reason)
    return found
