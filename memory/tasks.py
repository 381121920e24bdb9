"""Memory's work in the background. The database is the truth: a lost task is found again."""

from datetime import UTC, datetime
from uuid import UUID

from celery import shared_task

from memory.layers import conversations, cycle, digests


@shared_task
def run_cycle() -> None:
    """Finds all that is due and gives each piece a task of its own. Runs every minute."""
    now = datetime.now(UTC)
    for session_id in cycle.due_sessions(now):
        summarise_session.delay(str(session_id))
    for project_id in cycle.due_projects():
        settle_project.delay(str(project_id))


@shared_task
def summarise_session(session_id: str, force: bool = False) -> None:
    """Summarises what is due of one session; with `force`, all that is there, at once."""
    conversations.summarise(UUID(session_id), datetime.now(UTC), force=force)


@shared_task
def settle_project(project_id: str) -> None:
    """Lets one project's layers settle."""
    digests.settle(UUID(project_id), datetime.now(UTC))
