"""Marks the database while a restore is unfinished, because it may then contain forgotten data.

The marker is set in the transaction that restores the tables, and removed at the end of the
restore. A lock in the data folder prevents a restore beside the processes that `run` started.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

from config.health.heartbeats import CONNECT_TIMEOUT_S
from projects.core.database import own_connection

log = logging.getLogger(__name__)

TABLE = "restore_under_way"
UNFINISHED = (
    "A restore of this database was not finished, and it may contain forgotten data: run"
    " `manage.py restore` again."
)


def is_set(using: str = "default") -> bool:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{TABLE}"])
        return bool(cursor.fetchone()[0])


def remove() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(f"DROP TABLE public.{TABLE}")


def block_migration(using: str, **kwargs: object) -> None:
    """Stop a migration, and therefore the start of `up`. Raises `CommandError`."""
    if is_set(using):
        raise CommandError(UNFINISHED)


def block_process() -> None:
    """Stop the start of a process that does not migrate. Raises `CommandError`.

    If the database is not available, the process starts, and waits for it.
    """
    with suppress(psycopg.Error), own_connection(connect_timeout=CONNECT_TIMEOUT_S) as database:
        if database.execute("SELECT to_regclass(%s)", [f"public.{TABLE}"]).fetchone() != (None,):
            raise CommandError(UNFINISHED)


@contextmanager
def process_lock(mode: int) -> Iterator[None]:
    """Lock the data folder: `fcntl.LOCK_SH` for a process, `fcntl.LOCK_EX` for a restore.

    A program that replaces this process keeps the lock. Without access to the folder, or on a file
    system without locks, nothing is locked. Raises `CommandError`.
    """
    try:
        handle = os.open(settings.DATA_DIR / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        try:
            fcntl.flock(handle, mode | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandError(
                f"A process that `run` started uses {settings.DATA_DIR}: stop Strata first."
                if mode == fcntl.LOCK_EX
                else f"A restore on {settings.DATA_DIR} is under way."
            ) from error
        except OSError as error:
            log.warning("folder_not_locked cause=%r", error)
        os.set_inheritable(handle, True)
        yield
    finally:
        os.close(handle)
