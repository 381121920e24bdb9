"""Celery tasks of memory. The database is the source of truth: if a task is lost, the next periodic
run finds its work again.
"""

from datetime import UTC, datetime
from uuid import UUID

from celery import shared_task
from prometheus_client import Histogram

from memory import backfill, demo, webhooks
from memory.files import processing
from memory.forgetting import retention
from memory.layers import conversations, cycle, digests
from memory.models import Entry
from memory.recall import embedders, indexing, vector_index

# A task that was not started within this time is dropped, because periodic runs start it again.
TASK_EXPIRES_S = 60
# Time limits of single tasks. The next task continues the work.
INDEXING_S = 240
VECTOR_INDEX_S = 30
RETENTION_S = 120
BACKFILL_S = 40
READING_S = 240

CYCLE_SECONDS = Histogram(
    "strata_memory_cycle_duration_seconds",
    "Time a memory cycle takes to find what is due and to start the tasks.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)


@shared_task
@CYCLE_SECONDS.time()
def run_cycle() -> None:
    """Find all due work, and start a task for each item. Runs every minute."""
    now = datetime.now(UTC)
    due = cycle.due(now)
    for session_id in due.sessions:
        summarise_session.apply_async([str(session_id)], expires=TASK_EXPIRES_S)
    for entry_id in due.entries:
        rewrite_entry.apply_async([str(entry_id)], expires=TASK_EXPIRES_S)
    for project_id in due.projects:
        update_layers.apply_async([str(project_id)], expires=TASK_EXPIRES_S)
    if backfill.entries_without_lines().exists():
        add_lines.apply_async(expires=TASK_EXPIRES_S)


@shared_task
def add_lines() -> None:
    """Add lines to entries of older versions of Strata. The next cycle continues."""
    backfill.add_lines(seconds=BACKFILL_S)


@shared_task
def make_demo(project_id: str) -> None:
    """Fill a demo project while its owner waits."""
    demo.make(UUID(project_id))


@shared_task
def summarise_session(session_id: str, force: bool = False) -> None:
    """Summarise a session if it is due, or with `force` in any case."""
    start_layers(conversations.summarise(UUID(session_id), datetime.now(UTC), force=force))


@shared_task
def rewrite_entry(entry_id: str) -> None:
    """Rewrite a stale conversation entry."""
    start_layers(cycle.rewrite(UUID(entry_id), datetime.now(UTC)))


def start_layers(entry: Entry | None) -> None:
    """Start an update of the layers if `entry` was the last entry that its project waited for.

    The periodic run skips a project while one of its conversations is due. In a busy project, it
    could skip the project every time.
    """
    if entry is not None and cycle.layers_are_due(entry.project_id, datetime.now(UTC)):
        update_layers.apply_async([str(entry.project_id)], expires=TASK_EXPIRES_S)


@shared_task(name="memory.tasks.settle_project")
def update_layers(project_id: str) -> None:
    """Roll up and rewrite the entries of a project if this is still due.

    It may no longer be due, because a task can arrive late or twice.
    """
    now = datetime.now(UTC)
    if cycle.layers_are_due(UUID(project_id), now):
        digests.update_layers(UUID(project_id), now)


@shared_task
def run_indexing() -> None:
    """Index changed sessions. Runs after each change, and every minute for missed changes."""
    done = indexing.catch_up(seconds=INDEXING_S)
    waits = vector_index.add_waiting(embedders.get(), seconds=VECTOR_INDEX_S)
    # Without progress, the embedder fails or another process has locked the rows: wait a minute.
    has_progress = done.sessions > 0 or done.chunks > 0
    if waits or (has_progress and indexing.is_behind()):
        run_indexing.apply_async(expires=TASK_EXPIRES_S)


@shared_task
def run_reading() -> None:
    """Read and index new files. Runs after each upload, and every minute for missed uploads."""
    if not processing.catch_up(seconds=READING_S):
        run_reading.apply_async(expires=TASK_EXPIRES_S)


@shared_task
def run_deliveries() -> None:
    """Start one delivery task for each webhook that has events to send.

    Runs after each event, and every 20 seconds for retries and missed events.
    """
    for webhook_id in webhooks.due():
        deliver.apply_async([str(webhook_id)], expires=TASK_EXPIRES_S)


@shared_task
def deliver(webhook_id: str) -> None:
    """Send the pending events of a webhook. Start another task when the time is up."""
    if not webhooks.deliver(UUID(webhook_id)):
        deliver.apply_async([webhook_id], expires=TASK_EXPIRES_S)


@shared_task(name="memory.tasks.let_go")
def apply_retention() -> None:
    """Forget chats that are older than their project's retention period. Runs every hour."""
    if not retention.forget_expired(seconds=RETENTION_S):
        apply_retention.apply_async(expires=TASK_EXPIRES_S)


@shared_task
def clear_deliveries() -> None:
    """Give up deliveries that have failed for too long, and delete old ones. Runs every hour."""
    webhooks.give_up()
    webhooks.clear()
