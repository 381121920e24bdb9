"""Files that rows name, and how they go: never in the instant in which a backup takes hold of them.

A backup reads the rows in a snapshot, and links their files into a folder of its own while it holds
the lock, or reads them, where they lie in a bucket. Whoever removes a file removes its row first;
while there is a lock, the file is left to the sweep.

What is to go is written down in the transaction in which its row goes, and is tried until it is
gone: a bucket may be away for a while.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from uuid import UUID

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from chat.models import Attachment, FileRemoval, Import

# An advisory lock's number: "files".
LOCK = 0x66696C6573
# Removals in one sweep.
AT_ONCE = 1_000
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)

log = logging.getLogger(__name__)

_act: ContextVar[UUID | None] = ContextVar("act", default=None)


@contextmanager
def removed_by(act: UUID) -> Iterator[None]:
    """What is removed inside goes by this forgetting."""
    before = _act.set(act)
    try:
        yield
    finally:
        _act.reset(before)


def remove(project_id: UUID, path: str) -> None:
    """Has the file at `path` go, whose row goes in this transaction, unless another names it."""
    removal = FileRemoval.objects.create(project_id=project_id, path=path, act=_act.get())
    transaction.on_commit(lambda: _remove_at_once(removal), robust=True)


def left_by(project_id: UUID, act: UUID) -> int:
    """How many files that a forgetting removes are there still."""
    return FileRemoval.objects.filter(project_id=project_id, act=act).count()


def sweep_removals() -> None:
    """Removes what could not be removed so far, as far as it is due. It stops where that fails:
    what is away for one file is away for the next.
    """
    due = FileRemoval.objects.filter(next_try_at__lte=Now()).order_by("next_try_at")
    for removal in due[:AT_ONCE]:
        if not _carry_out(removal):
            break


def _remove_at_once(removal: FileRemoval) -> None:
    """For who waits for it. Where another file failed, they do not wait for this one to fail."""
    failed = FileRemoval.objects.filter(project_id=removal.project_id).exclude(last_error="")
    if not failed.exists():
        _carry_out(removal)


def _carry_out(removal: FileRemoval) -> bool:
    """Whether the file is gone, or left to somebody else who is at it."""
    row = FileRemoval.objects.filter(project_id=removal.project_id, pk=removal.pk)
    wait = min(FIRST_WAIT * 2**removal.attempts, LONGEST_WAIT)
    # The attempt is on the record before it is made: whoever dies in it leaves it to the sweep.
    claimed = row.filter(attempts=removal.attempts)
    if not claimed.update(attempts=F("attempts") + 1, next_try_at=Now() + wait):
        return True
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [LOCK])
            if cursor.fetchone() != (True,):
                # A backup reads. This was no attempt.
                row.update(attempts=removal.attempts, next_try_at=Now() + FIRST_WAIT)
                return False
            if not _is_named(removal):
                default_storage.delete(removal.path)
            row.delete()
    except Exception as error:
        # Each storage has errors of its own, and none may make a file be forgotten about.
        log.warning("file_not_removed removal=%s", removal.pk, exc_info=error)
        row.update(last_error=type(error).__name__[:100])
        return False
    return True


def _is_named(removal: FileRemoval) -> bool:
    """Whether another row has the file: forks share their images with their originals."""
    of_project = {"project": removal.project_id, "file": removal.path}
    return any(model.objects.filter(**of_project).exists() for model in (Attachment, Import))


@contextmanager
def folder_to_hold() -> Iterator[Path]:
    """A folder beside the files, on their disk. It goes at the end, and if its process dies with
    the next `clear_abandoned`.
    """
    parent = _holds()
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(mkdtemp(dir=parent))
    claim = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(claim)


def hold(folder: Path, path: str) -> bool:
    """Has the file at `path` stay in `folder`, whatever becomes of it; whether it was there."""
    there, kept = Path(settings.MEDIA_ROOT) / path, folder / path
    kept.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(there, kept)
    except FileNotFoundError:
        return False
    except OSError:
        # Not every file system knows links.
        shutil.copyfile(there, kept)
    return True


def clear_abandoned() -> int:
    """Removes the folders that a killed backup left; returns how many."""
    gone = 0
    for folder in _holds().glob("*"):
        claim = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            gone += 1
        finally:
            os.close(claim)
    return gone


def _holds() -> Path:
    return Path(settings.MEDIA_ROOT) / "held"
