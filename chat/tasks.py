"""Celery tasks of chat. Each takes an id or nothing, and may run twice."""

from uuid import UUID

from celery import shared_task

from chat import attachments
from chat.attachments import file_removal
from chat.conversations import sessions, titles
from chat.importers import jobs
from chat.providers import discovery, limits
from chat.streaming import live_replies


@shared_task
def sweep_interrupted() -> None:
    """Finalise replies whose process has ended, and book their calls. Runs periodically."""
    live_replies.sweep_interrupted()
    limits.end_expired()


@shared_task
def sweep_attachments() -> None:
    """Delete uploads that no message uses, and folders of interrupted backups. Runs every hour."""
    attachments.delete_unclaimed()
    file_removal.delete_abandoned_backup_folders()


@shared_task
def sweep_removals() -> None:
    """Delete files that could not be deleted with their rows. Runs every minute."""
    file_removal.retry_due_removals()


@shared_task
def run_import(import_id: str) -> None:
    """Run an import. Enqueue another task if the time runs out."""
    if not jobs.run_import(UUID(import_id)):
        jobs.enqueue(UUID(import_id))


@shared_task
def sweep_imports() -> None:
    """Enqueue imports whose process has died or whose task was lost. Runs every minute."""
    for import_id in jobs.find_interrupted():
        jobs.enqueue(import_id)


@shared_task
def close_the_silent() -> None:
    """Close chats without recent activity. Runs every hour."""
    sessions.close_idle_sessions()


@shared_task
def purge_deleted() -> None:
    """Permanently delete the chats whose undo window is over. Runs every minute."""
    sessions.purge_deleted()


@shared_task
def refresh_models() -> None:
    """Read the model lists of all providers again. Runs every ten minutes."""
    discovery.refresh_lists()


@shared_task
def title_session(session_id: str) -> None:
    """Write a chat's title after its first exchange. If the task is lost, the first title stays."""
    titles.write_title(UUID(session_id))
