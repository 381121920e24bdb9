"""What is being said right now: replies under way in this process, and who listens to them.

A reply is a task of the process, not of the request that asked for it: it goes on when its reader
leaves, and any number of readers may follow it from any point.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

from django.db.models.functions import Now

from chat import replies
from chat.database import in_thread
from chat.models import Message, Status
from chat.providers import Delta

# Seconds between two looks at a reply that another process says.
POLL_SECONDS = 1.0
# A reply whose process gave no sign of life for so long was cut off by that process's end.
SILENCE = timedelta(seconds=20)


class Live:
    """A reply as it is being said here: its text so far, and a bell that rings when more came."""

    def __init__(self) -> None:
        self.text = ""
        self.done = False
        self._bell = asyncio.Event()

    def say(self, text: str) -> None:
        self.text += text
        self._ring()

    def finish(self) -> None:
        self.done = True
        self._ring()

    def _ring(self) -> None:
        self._bell.set()
        self._bell = asyncio.Event()

    async def more(self) -> None:
        """Waits until something was added."""
        await self._bell.wait()


_live: dict[UUID, Live] = {}
_tasks: set[asyncio.Task[None]] = set()


async def start(reply: Message) -> None:
    """Begins to say `reply` in this process and returns at once."""
    live = _live[reply.pk] = Live()
    task = asyncio.create_task(_say(reply, live))
    # The loop itself keeps only weak references to its tasks.
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _say(reply: Message, live: Live) -> None:
    try:
        async for event in replies.stream_reply(reply):
            if isinstance(event, Delta):
                live.say(event.text)
    finally:
        _live.pop(reply.pk, None)
        live.finish()


async def follow(reply_id: UUID, position: int = 0) -> AsyncIterator[Delta]:
    """The text of a reply from `position` (in characters) on, until the reply is final.

    A slow reader gets fewer, longer pieces: nothing is queued for it.
    """
    live = _live.get(reply_id)
    if live is None:
        async for delta in _follow_elsewhere(reply_id, position):
            yield delta
        return
    while True:
        # Asked for before the text is read, so that nothing said in between is missed.
        more = asyncio.ensure_future(live.more())
        try:
            if len(live.text) > position:
                piece, position = live.text[position:], len(live.text)
                yield Delta(piece)
            elif live.done:
                return
            else:
                await more
        finally:
            more.cancel()


async def _follow_elsewhere(reply_id: UUID, position: int) -> AsyncIterator[Delta]:
    """As `follow`, for a reply of another process, read from what that one flushes."""
    while True:
        row = await in_thread(
            Message.objects.filter(pk=reply_id).values_list("text", "status").first
        )
        if row is None:
            return
        text, status = row
        if len(text) > position:
            yield Delta(text[position:])
            position = len(text)
        if status not in (Status.PENDING, Status.STREAMING):
            return
        await asyncio.sleep(POLL_SECONDS)


async def settle() -> None:
    """Waits until every reply of this process is finished."""
    while _tasks:
        await asyncio.wait(set(_tasks))


def sweep_interrupted() -> int:
    """Ends the replies whose process died, with the text they had; returns how many."""
    silent = Message.objects.unfinished().filter(heartbeat_at__lt=Now() - SILENCE)
    found = 0
    for reply in silent.select_related("session")[:1000]:
        reason = {"error": "The server stopped while this was being said."}
        found += replies.finalise(reply, reply.text, Status.INTERRUPTED, reason)
    return found
