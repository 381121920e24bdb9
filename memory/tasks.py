"""Memory's work in the background. The database is the truth: a lost task is found again."""

import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from celery import Task, shared_task
from django.db import connection, transaction

from memory import retention
from memory.layers import conversations, cycle, digests
from memory.metrics import CYCLE
from memory.models import Entry
from memory.recall import embedders, indexing, vector_index
from memory.webhooks import delivering

log = logging.getLogger(__name__)

# What a cycle starts is void when the next one has come and found it again.
CYCLE_SECONDS = 60
# A task indexes for so long, and leaves the rest to another.
INDEXING_SECONDS = 240
# And puts vectors into their index for so long: meanwhile they are found as well.
TAKING_IN_SECONDS = 30
# And forgets what is over its time for so long.
LETTING_GO_SECONDS = 120
# Seconds between two messages of one process that there is something to index.
BETWEEN_WAKES = 1.0
# Seconds for which a broker that was away is not asked again, since asking takes time.
PATIENCE = 10.0

_broker_is_away_until = 0.0


@shared_task
@CYCLE.time()
def run_cycle() -> None:
    """Finds all that is due and gives each piece a task of its own. Runs every minute."""
    now = datetime.now(UTC)
    due = cycle.due(now)
    for session_id in due.sessions:
        summarise_session.apply_async([str(session_id)], expires=CYCLE_SECONDS)
    for entry_id in due.entries:
        rewrite_entry.apply_async([str(entry_id)], expires=CYCLE_SECONDS)
    for project_id in due.projects:
        settle_project.apply_async([str(project_id)], expires=CYCLE_SECONDS)


@shared_task
def summarise_session(session_id: str, force: bool = False) -> None:
    """Summarises what is due of one session; with `force`, all that is there, at once."""
    _settle_next(conversations.summarise(UUID(session_id), datetime.now(UTC), force=force))


@shared_task
def rewrite_entry(entry_id: str) -> None:
    """Writes one stale conversation entry anew."""
    _settle_next(conversations.rewrite(UUID(entry_id), datetime.now(UTC)))


def _settle_next(entry: Entry | None) -> None:
    """Has the layers settle once the last of a project's conversations is written. In a busy
    project each look of the beat might find another one due.
    """
    if entry is not None and cycle.may_settle(entry.project_id, datetime.now(UTC)):
        settle_project.apply_async([str(entry.project_id)], expires=CYCLE_SECONDS)


@shared_task
def settle_project(project_id: str) -> None:
    """Lets one project's layers settle, if they are still to: the message may come late, or twice,
    and then conversations may be waiting again.
    """
    now = datetime.now(UTC)
    if cycle.may_settle(UUID(project_id), now):
        digests.settle(UUID(project_id), now)


@shared_task
def run_indexing() -> None:
    """Indexes what changed. Runs after each change, and every minute for what was missed."""
    indexing.catch_up(seconds=INDEXING_SECONDS)
    waits = vector_index.keep_up(embedders.get(), seconds=TAKING_IN_SECONDS)
    if waits or indexing.is_behind():
        run_indexing.apply_async(expires=CYCLE_SECONDS)


@shared_task
def run_deliveries() -> None:
    """Has delivered what webhooks wait for, each by a task of its own. Runs when something
    happened that is to be told, and every twenty seconds for what is tried again or was missed.
    """
    for webhook_id in delivering.due():
        deliver.apply_async([str(webhook_id)], expires=CYCLE_SECONDS)


@shared_task
def deliver(webhook_id: str) -> None:
    """Tells one webhook what it waits for, and leaves what it has no time for to another task."""
    if not delivering.deliver(UUID(webhook_id)):
        deliver.apply_async([webhook_id], expires=CYCLE_SECONDS)


@shared_task
def let_go() -> None:
    """Has forgotten what projects keep no longer. Runs every hour, and goes on until it is done."""
    if not retention.let_go(seconds=LETTING_GO_SECONDS):
        let_go.apply_async(expires=CYCLE_SECONDS)


@shared_task
def clear_deliveries() -> None:
    """Gives up what webhooks could not be told, and clears the old log. Runs every hour."""
    delivering.give_up()
    delivering.clear()


def wake_indexing() -> None:
    """Has what this transaction changes indexed once it is committed."""
    _on_commit(_send_indexing)


def wake_deliveries() -> None:
    """Has webhooks told of what this transaction does once it is committed."""
    _on_commit(_send_deliveries)


def _on_commit(send: Callable[[], None]) -> None:
    """One message, however many changes."""
    if not any(hook is send for _, hook, *_ in connection.run_on_commit):
        transaction.on_commit(send)


class Wakes:
    """Asks for a task, for any number of calls at most once in so many seconds: at once after a
    pause, else when the time has come, for all that called meanwhile. A process that ends before
    asks first.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._asked = -math.inf
        self._later: threading.Timer | None = None

    def __call__(self) -> None:
        with self._lock:
            if self._later is not None:
                return
            wait = self._asked + BETWEEN_WAKES - time.monotonic()
            if wait > 0:
                self._later = threading.Timer(wait, self._ask)
                self._later.start()
                return
            self._asked = time.monotonic()
        _send(self._task)

    def _ask(self) -> None:
        with self._lock:
            self._asked, self._later = time.monotonic(), None
        _send(self._task)


_send_indexing = Wakes(run_indexing)


def _send_deliveries() -> None:
    _send(run_deliveries)


def _send(task: Task) -> None:
    """Should the broker be away, the chat goes on and the beat finds the work."""
    global _broker_is_away_until
    if time.monotonic() < _broker_is_away_until:
        return
    try:
        task.apply_async(expires=CYCLE_SECONDS, retry=False)
    except Exception as error:
        # Each broker has its own. Whatever it was, what was said is said, and the sweep finds it.
        log.warning("not_woken task=%s cause=%r", task.name, error)
        _broker_is_away_until = time.monotonic() + PATIENCE
