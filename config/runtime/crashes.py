"""Count worker crashes by task, and stop running a task after three crashes.

While a task runs, a file in STRATA_DATA_DIR/running names it, and its process holds a lock on the
file. If the process dies for any reason, the kernel releases the lock. The first task of each new
process reads the files of dead processes. Therefore counting takes no query per task, and works
with every broker and pool. If the database is not available, the files are kept until it is.
"""

import fcntl
import hashlib
import json
import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import celery
from celery.signals import worker_shutting_down
from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.utils import timezone

from config.models import CrashedTask
from config.settings.env import private_folder

log = logging.getLogger(__name__)

MAX_CRASHES = 3
# If the last crash of a task was longer ago, its count begins again at one.
CRASHES_EXPIRE_AFTER = timedelta(days=1)
# The minimum interval, in seconds, at which a process reads the tasks that are set aside.
REFRESH_S = 10.0
DRAFT_SUFFIX = ".new"

_thread = threading.local()
_lock = threading.Lock()
_counted_by_process = 0
_set_aside: frozenset[str] = frozenset()
_refreshed_at = float("-inf")


class CrashAwareTask(celery.Task):
    """Base class of all tasks. It does not run tasks that are set aside."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.request.called_directly or self.request.is_eager:
            return super().__call__(*args, **kwargs)
        if is_set_aside(self.name, args, kwargs):
            log.warning("task_skipped task=%s reason=set_aside", self.name)
            return None
        with running(self.name, args, kwargs):
            return self.run(*args, **kwargs)


def task_key(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return a key that is equal for all messages that request the same work."""
    text = json.dumps([name, list(args), dict(kwargs)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def running(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Within the block, name the task in the file of this thread."""
    try:
        file = _own_file()
        task = {"name": name, "args": args, "kwargs": kwargs}
        os.pwrite(file, json.dumps(task, default=str).encode(), 0)
    except OSError:
        # Ignore the error, because a full disk must not stop tasks.
        log.warning("running_file_failed", exc_info=True)
        yield
        return
    try:
        yield
    finally:
        os.ftruncate(file, 0)


def is_set_aside(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether this work is set aside. If the database is not available, return False."""
    try:
        _count_once_per_process()
        key = task_key(name, args, kwargs)
        # Check the database too, because the cached list may be outdated.
        return key in _set_aside_keys() and CrashedTask.objects.set_aside().filter(pk=key).exists()
    except (DatabaseError, InterfaceError, OSError):
        log.warning("crash_check_failed", exc_info=True)
        return False


def count_crashes() -> None:
    """Count the tasks of dead processes on this machine. Raises `DatabaseError`."""
    for path in folder().glob("*.json"):
        with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have counted this file since it was listed.
            if os.fstat(file.fileno()).st_nlink and (text := file.read()):
                try:
                    task = json.loads(text)
                except ValueError:
                    # A full disk or a power failure left an incomplete file.
                    log.warning("running_file_damaged")
                else:
                    record_crash(**task)
            path.unlink()


@transaction.atomic
def record_crash(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Count a crash. Set the task aside if it has crashed too often."""
    now = timezone.now()
    row, _ = CrashedTask.objects.select_for_update().get_or_create(
        key=task_key(name, args, kwargs),
        defaults={"task": name, "args": args, "kwargs": kwargs, "last_crash_at": now},
    )
    is_recent = row.last_crash_at > now - CRASHES_EXPIRE_AFTER
    row.crashes = row.crashes + 1 if is_recent else 1
    row.last_crash_at = now
    if row.crashes >= MAX_CRASHES and row.set_aside_at is None:
        row.set_aside_at = now
        log.error("task_set_aside task=%s crashes=%s", name, row.crashes)
    else:
        log.warning("task_crashed task=%s crashes=%s", name, row.crashes)
    row.save()


def folder() -> Path:
    return private_folder(settings.DATA_DIR / "running")


@worker_shutting_down.connect
def remove_own_files(**_: Any) -> None:
    """Delete the files of this worker at shutdown, so that its tasks do not count as crashes."""
    for path in folder().glob("*.json"):
        host, *processes = path.name.rsplit("-", 3)[:-1]
        if host == socket.gethostname() and str(os.getpid()) in processes:
            path.unlink(missing_ok=True)


def _own_file() -> int:
    """Return the file descriptor of this thread's file. The first call creates the file."""
    if getattr(_thread, "process", None) != os.getpid():
        # The name also contains the parent's id: with a pool of processes, a shutdown signals the
        # parent. It contains the host, because ids of processes are equal in containers.
        prefix = f"{socket.gethostname()}-{os.getppid()}-{os.getpid()}-"
        file, draft = tempfile.mkstemp(DRAFT_SUFFIX, prefix, folder())
        # Lock the file before others can find it.
        fcntl.flock(file, fcntl.LOCK_EX)
        Path(draft).rename(Path(draft).with_suffix(".json"))
        _thread.process, _thread.file = os.getpid(), file
    return int(_thread.file)


def _count_once_per_process() -> None:
    global _counted_by_process
    with _lock:
        if _counted_by_process != os.getpid():
            count_crashes()
            _counted_by_process = os.getpid()


def _set_aside_keys() -> frozenset[str]:
    global _set_aside, _refreshed_at
    if time.monotonic() - _refreshed_at > REFRESH_S:
        keys = CrashedTask.objects.set_aside().values_list("pk", flat=True)
        _set_aside, _refreshed_at = frozenset(keys), time.monotonic()
    return _set_aside
