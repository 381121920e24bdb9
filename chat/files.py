"""Files that rows name, and how they go: never in the instant in which a backup takes hold of them.

A backup reads the rows in a snapshot, and links their files into a folder of its own while it holds
the lock. Whoever removes a file removes its row first, then waits for the lock.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction

# An advisory lock's number: "files".
LOCK = 0x66696C6573


def remove(path: str, unless: Callable[[], bool] = lambda: False) -> None:
    """Removes the file at `path`, whose row is gone and committed, `unless` another has it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [LOCK])
        if not unless():
            default_storage.delete(path)


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
