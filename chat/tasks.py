"""Chat's work in the background."""

from uuid import UUID

from celery import shared_task

from chat import attachments, closing, files, imports, sessions, streams, titling


@shared_task
def sweep_interrupted() -> None:
    """Finds replies whose process died. Runs every half minute."""
    streams.sweep_interrupted()


@shared_task
def sweep_attachments() -> None:
    """Removes images that were uploaded and never sent, and what a killed backup left of files.
    Runs every hour.
    """
    attachments.sweep()
    files.clear_abandoned()


@shared_task
def sweep_removals() -> None:
    """Removes files that could not be removed when their rows were. Runs every minute."""
    files.sweep_removals()


@shared_task
def run_import(import_id: str) -> None:
    """Carries an import on, and leaves what a task has no time for to the next one."""
    if not imports.run(UUID(import_id)):
        imports.enqueue(UUID(import_id))


@shared_task
def sweep_imports() -> None:
    """Finds imports whose process died or whose message was lost. Runs every minute."""
    for import_id in imports.sweep():
        imports.enqueue(import_id)


@shared_task
def close_the_silent() -> None:
    """Closes conversations that nobody has gone on with for long. Runs every hour."""
    closing.close_the_silent()


@shared_task
def purge_deleted() -> None:
    """Removes for good the chats that were deleted and not brought back. Runs every minute."""
    sessions.purge_deleted()


@shared_task
def title_session(session_id: str) -> None:
    """Has a chat named after its first exchange. A lost task leaves the first words as title."""
    titling.give_title(UUID(session_id))
