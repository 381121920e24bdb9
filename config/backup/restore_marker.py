"""Marks the database while a restore is unfinished, because it may then contain forgotten data.

The marker is set in the transaction that restores the tables, and removed at the end of the
restore.
"""

from contextlib import suppress

import psycopg
from django.core.management.base import CommandError
from django.db import connections

from config.health.heartbeats import CONNECT_TIMEOUT_S
from projects.core.database import own_connection

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
