"""Removes files whose row was deleted or never saved, but never while a backup copies them.

A backup reads the rows in a snapshot. While it holds a lock, it links the files into its own
folder, or reads them from a bucket. Code that removes a file first deletes its row. If the lock is
held, the file is kept, and a later sweep removes it.

The removal is stored in the transaction that deletes the row. It is retried until it succeeds,
because a bucket may be unavailable for some time.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import F, FileField, Model
from django.db.models.functions import Now

from chat.models import FileRemoval

# The number of the advisory lock, "files" in ASCII.
FILES_LOCK_ID = 0x66696C6573
# The maximum number of removals in one sweep.
BATCH_SIZE = 1_000
FIRST_WAIT, MAX_WAIT = timedelta(minutes=1), timedelta(hours=1)
# A file whose row is not saved within this time is removed.
SAVE_WITHIN = timedelta(days=1)

log = logging.getLogger(__name__)

_forget_act: ContextVar[UUID | None] = ContextVar("act", default=None)


@contextmanager
def attribute_removals_to(act: UUID) -> Iterator[None]:
    """Within the block, record that removals belong to the forget request `act`."""
    token = _forget_act.set(act)
    try:
        yield
    finally:
        _forget_act.reset(token)


def write_file(row: Any, name: str, content: File) -> None:
    """Write `content` as the file of `row`, which is not saved yet.

    If this process dies before it saves `row`, the sweep removes the file. Outside of a
    transaction, the removal is therefore stored first. Call `keep_file` in the transaction that
    saves `row`.
    """
    path = row.file.field.generate_filename(row, name)
    FileRemoval.objects.create(
        project_id=row.project_id, path=path, next_try_at=Now() + SAVE_WITHIN
    )
    save_file(row, name, content)


def save_file(row: Any, name: str, content: File) -> None:
    """Write `content` as the file of `row`. After an error, no part of it is left: a file that does
    not fit would otherwise keep the disk full.
    """
    path = row.file.field.generate_filename(row, name)
    try:
        row.file.save(name, content, save=False)
    except BaseException:
        # Everything: a time limit or the end of the process may interrupt the writing, too. The
        # storage may also be away, but its first error is the reason.
        with suppress(Exception):
            default_storage.delete(path)
        raise


def keep_file(row: Any, path: str = "") -> None:
    """Cancel the removal that `write_file` stored, of the file of `row` or of the one at `path`."""
    path = path or str(row.file.name)
    FileRemoval.objects.filter(project_id=row.project_id, path=path).delete()


def schedule_removal(project_id: UUID, path: str) -> None:
    """Remove the file at `path` after this transaction, unless another row still uses it."""
    removal = FileRemoval.objects.create(project_id=project_id, path=path, act=_forget_act.get())
    transaction.on_commit(lambda: _remove_now(removal), robust=True)


def count_pending_removals(project_id: UUID, act: UUID) -> int:
    """Return how many files of a forget request are not removed yet."""
    return FileRemoval.objects.filter(project_id=project_id, act=act).count()


def retry_due_removals() -> None:
    """Retry the removals that are due. Stop at the first failure, because the storage is then
    probably not available.
    """
    due = FileRemoval.objects.filter(next_try_at__lte=Now()).order_by("next_try_at")
    for removal in due[:BATCH_SIZE]:
        if not _try_removal(removal):
            break


def _remove_now(removal: FileRemoval) -> None:
    """Remove the file at once. Do nothing if another removal of the project has failed, so that
    requests do not wait for further failures.
    """
    failed = FileRemoval.objects.filter(project_id=removal.project_id).exclude(last_error="")
    if not failed.exists():
        _try_removal(removal)


def _try_removal(removal: FileRemoval) -> bool:
    """Try to remove the file. Return False if it must be retried, True otherwise."""
    row = FileRemoval.objects.filter(project_id=removal.project_id, pk=removal.pk)
    # The exponent is limited too, because a timedelta overflows at 2**41.
    wait = min(FIRST_WAIT * 2 ** min(removal.attempts, 10), MAX_WAIT)
    # Store the attempt first, so that the sweep retries if this process dies.
    claimed = row.filter(attempts=removal.attempts)
    if not claimed.update(attempts=F("attempts") + 1, next_try_at=Now() + wait):
        return True
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [FILES_LOCK_ID])
            if cursor.fetchone() != (True,):
                # A backup is running. This does not count as an attempt.
                row.update(attempts=removal.attempts, next_try_at=Now() + FIRST_WAIT)
                return False
            if not _is_referenced(removal):
                default_storage.delete(removal.path)
            row.delete()
    except Exception as error:
        # Storages raise their own exceptions. After any of them, the removal must be retried.
        log.warning("file_removal_failed removal=%s", removal.pk, exc_info=error)
        row.update(last_error=type(error).__name__[:100])
        return False
    return True


def _is_referenced(removal: FileRemoval) -> bool:
    """Return True if another row uses the file. Forks share images with their originals."""
    columns = {"project": removal.project_id, "file": removal.path}
    return any(model._default_manager.filter(**columns).exists() for model in models_with_files())


@cache
def models_with_files() -> tuple[type[Model], ...]:
    """Return the models whose rows each have a stored file, named in the column `file`."""
    return tuple(
        model
        for model in apps.get_models()
        if any(isinstance(it, FileField) and it.name == "file" for it in model._meta.fields)
    )


@contextmanager
def backup_folder() -> Iterator[Path]:
    """Create a folder on the disk of the files. It is removed at the end of the block.

    If the process dies earlier, `delete_abandoned_backup_folders` removes it.
    """
    parent = _backup_folders()
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(mkdtemp(dir=parent))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def link_for_backup(folder: Path, path: str) -> bool:
    """Link the file at `path` into `folder`, so that its content is still there after the removal.

    Returns False if the file does not exist.
    """
    source, target = Path(settings.MEDIA_ROOT) / path, folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        return False
    except OSError:
        # Copy the file, because some file systems do not support links.
        shutil.copyfile(source, target)
    return True


def delete_abandoned_backup_folders() -> int:
    """Delete the folders of backups that were killed, and return their number."""
    deleted = 0
    for folder in _backup_folders().glob("*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            # A backup has ended and removed its folder.
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            deleted += 1
        finally:
            os.close(descriptor)
    return deleted


def _backup_folders() -> Path:
    return Path(settings.MEDIA_ROOT) / "held"
