"""Memory's work in the background. The database is the truth: a lost task is found again."""

from datetime import UTC, datetime
from uuid import UUID

from celery import shared_task

from memory.layers import conversations, cycle, digests

# What a cycle starts is void when the next one has come and found it again.
CYCLE_SECONDS = 60


@shared_task
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
    conversations.summarise(UUID(session_id), datetime.now(UTC), force=force)


@shared_task
def rewrite_entry(entry_id: str) -> None:
    """Writes one stale conversation entry anew."""
    conversations.rewrite(UUID(entry_id), datetime.now(UTC))


@shared_task
def settle_project(project_id: str) -> None:
    """Lets one project's layers settle."""
    digests.settle(UUID(project_id), datetime.now(UTC))
