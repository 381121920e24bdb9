"""Replies that this process is generating, and their readers.

A reply is a task of the process, not of the request that began it. It continues when its reader
disconnects. Any number of readers may follow it, from any position.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from chat.conversations import admission, generation
from chat.conversations.lookups import LookupsChanged
from chat.models import FINAL, Message, Session, Status
from chat.prompt.types import Lookup, load_lookups
from chat.providers import Delta, Failed, Finished, ProviderError, Thought
from chat.providers.base import ReplyOptions
from chat.providers.booking import Payer, lost_calls
from chat.streaming.poller import counted, get_poller
from projects.core.database import in_thread, logged_failure

# If a reply has no heartbeat for this time, its process is considered ended.
HEARTBEAT_TIMEOUT = timedelta(seconds=20)
SWEEP_BATCH_SIZE = 1_000

# The maximum length of reasoning that is shown. The rest is dropped.
MAX_THINKING_CHARS = 100_000

ReplyEvent = Delta | Thought | LookupsChanged | Finished | Failed
FollowedEvent = Delta | Thought | LookupsChanged


class LiveReply:
    """A reply in progress: its text, reasoning and lookups so far, and an event that is set at each
    change. Only readers in this process see the reasoning, because it is not stored.

    At the end, either `finished` or `failure` is set. If the reply was stopped, neither is set. If
    this process has stored the reply and it was not stopped, `stored` is the final message.
    """

    def __init__(self) -> None:
        self.text = ""
        self.thinking = ""
        self.lookups: tuple[Lookup, ...] = ()
        self.done = False
        self.stopped = False
        self.finished: Finished | None = None
        self.failure: ProviderError | None = None
        self.stored: Message | None = None
        self.task: asyncio.Task[None] | None = None
        # Set at the next change, then replaced. To miss no change: get the event, read, then wait.
        self.changed = asyncio.Event()

    def add(self, event: ReplyEvent) -> None:
        if isinstance(event, Delta):
            self.text += event.text
            self._notify()
        elif isinstance(event, Thought):
            self.thinking += event.text[: MAX_THINKING_CHARS - len(self.thinking)]
            self._notify()
        elif isinstance(event, LookupsChanged):
            self.lookups = event.lookups
            self._notify()
        elif isinstance(event, Finished):
            self.finished = event
        else:
            self.failure = event.error

    def finish(self) -> None:
        self.done = True
        self._notify()

    def stop(self) -> None:
        """Cancel the generation. The text received so far is kept."""
        if self.task is not None and not self.stopped:
            self.stopped = True
            self.task.cancel()

    def _notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


_live: dict[UUID, LiveReply] = {}
# Strong references, because the event loop keeps only weak references to its tasks.
_tasks: set[asyncio.Task[None]] = set()


async def start(
    reply: Message, payer: Payer = Payer(), options: ReplyOptions = ReplyOptions()
) -> LiveReply:
    """Begin to generate `reply` in this process. Returns at once."""
    live = _live[reply.pk] = LiveReply()
    events = generation.stream_reply(reply, lambda: live.stopped, options, payer)
    live.task = _create_task(_collect(events, live, reply))
    admission.hand_over(live.task)
    watch = _create_task(_watch_stop_requests(reply.pk, live))
    live.task.add_done_callback(lambda task: watch.cancel())
    return live


async def start_unstored(events: AsyncIterator[ReplyEvent]) -> LiveReply:
    """Begin to collect `events` without storing them. Returns at once.

    The caller must stop the reply with `LiveReply.stop` when its reader disconnects.
    """
    admission.release()
    live = LiveReply()
    live.task = _create_task(_collect(events, live))
    return live


def _create_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


async def _collect(
    events: AsyncIterator[ReplyEvent], live: LiveReply, reply: Message | None = None
) -> None:
    try:
        async for event in events:
            live.add(event)
        # If another process has stored the reply, the object `reply` was not updated and is not
        # final.
        if reply is not None and reply.is_final:
            live.stored = reply
    except asyncio.CancelledError:
        if not live.stopped:
            raise
    finally:
        if reply is not None:
            _live.pop(reply.pk, None)
        live.finish()


async def _watch_stop_requests(reply_id: UUID, live: LiveReply) -> None:
    """Stop the reply when a reader in another process requests it."""
    poller = get_poller()
    with counted(poller.stoppable, reply_id):
        while not live.stopped:
            with suppress(Exception):
                # If this poll fails, the next one returns the request again.
                if reply_id in (await poller.next_result()).stops:
                    live.stop()


async def stop(reply_id: UUID) -> None:
    """Stop a reply of any process. The text received so far is kept."""
    unfinished = Message.objects.unfinished().filter(pk=reply_id)
    await in_thread(unfinished.update, stop_requested=True)
    live = _live.get(reply_id)
    if live is not None:
        live.stop()


def find(reply_id: UUID) -> LiveReply | None:
    """Return the reply if this process is generating it."""
    return _live.get(reply_id)


async def follow(reply_id: UUID, position: int = 0) -> AsyncIterator[FollowedEvent]:
    """Yield the lookups and the reasoning of a reply, and its text from the character `position`,
    until it is final.

    A slow reader gets fewer, longer pieces; nothing is queued.
    """
    live = find(reply_id)
    deltas = _follow_database(reply_id, position) if live is None else follow_live(live, position)
    async for delta in deltas:
        yield delta


async def follow_live(live: LiveReply, position: int = 0) -> AsyncIterator[FollowedEvent]:
    """Yield the same events as `follow`, for a reply of this process."""
    lookups: tuple[Lookup, ...] = ()
    thought = 0
    while True:
        changed = live.changed
        if live.lookups != lookups:
            lookups = live.lookups
            yield LookupsChanged(lookups)
        elif len(live.thinking) > thought:
            text, thought = live.thinking[thought:], len(live.thinking)
            yield Thought(text)
        elif len(live.text) > position:
            text, position = live.text[position:], len(live.text)
            yield Delta(text)
        elif live.done:
            return
        else:
            await changed.wait()


async def _follow_database(reply_id: UUID, position: int) -> AsyncIterator[FollowedEvent]:
    """Yield the events of `follow`, without reasoning, for a reply that another process writes."""
    rows = Message.objects.filter(pk=reply_id, deleted_at=None)
    row = await in_thread(rows.values_list("text", "status", "lookups").first)
    lookups: tuple[Lookup, ...] = ()
    poller = get_poller()
    with counted(poller.replies, reply_id):
        while row is not None:
            text, status, stored = row
            if (loaded := load_lookups(stored)) != lookups:
                lookups = loaded
                yield LookupsChanged(lookups)
            if len(text) > position:
                yield Delta(text[position:])
                position = len(text)
            if status in FINAL:
                return
            row = (await poller.next_result()).replies.get(reply_id)


async def watch(session_id: UUID, version: int) -> AsyncIterator[int]:
    """Yield the session's version whenever it exceeds `version`, until the session's row is
    deleted.
    """
    rows = Session.objects.filter(pk=session_id).values_list("version", flat=True)
    current: int | None = await in_thread(rows.first)
    poller = get_poller()
    with counted(poller.sessions, session_id):
        while current is not None:
            if current > version:
                version = current
                yield version
            current = (await poller.next_result()).versions.get(session_id)


async def wait_for_all() -> None:
    """Wait until every reply of this process is finished."""
    while _tasks:
        await asyncio.wait(set(_tasks))


def sweep_interrupted() -> int:
    """Finalise the replies whose process has ended, with the text stored so far. Return their
    number.
    """
    count = 0
    for reply in _silent_replies()[:SWEEP_BATCH_SIZE]:
        with logged_failure("reply_sweep_failed message=%s", reply.pk):
            count += _finalise_silent(reply)
    return count


def _silent_replies() -> QuerySet[Message]:
    # A heartbeat in the future was written before the clock was set back.
    is_silent = Q(heartbeat_at__lt=Now() - HEARTBEAT_TIMEOUT) | Q(
        heartbeat_at__gt=Now() + HEARTBEAT_TIMEOUT
    )
    return Message.objects.unfinished().filter(is_silent)


@transaction.atomic
def _finalise_silent(reply: Message) -> bool:
    """Finalise `reply` as interrupted. Return False if its heartbeats have resumed since."""
    # Lock the session first, in the same order as writers do, to prevent deadlocks.
    list(Session.objects.select_for_update().filter(project=reply.project_id, pk=reply.session_id))
    rows = _silent_replies().select_for_update(of=("self",)).filter(pk=reply.pk)
    current = rows.select_related("session__project", "parent").first()
    if current is None:
        return False
    changes = {"error": generation.SERVER_STOPPED}
    calls = lost_calls(current)
    return generation.finalise(current, current.text, Status.INTERRUPTED, changes, calls)
