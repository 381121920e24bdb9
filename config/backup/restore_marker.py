"""Marks the database while a restore is unfinished, because it may then contain forgotten data.

The marker is set in the transaction that restores the tables, and removed at the end of the
restore.
"""

from django.core.management.base import CommandError
from django.db import connections

TABLE = "restore_under_way"


def is_set(using: str = "default") -> bool:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{TABLE}"])
        return bool(cursor.fetchone()[0])


def remove() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(f"DROP TABLE public.{TABLE}")


def block_migration(using: str, **kwargs: object) -> None:
    """Stop a migration, and therefore the start of Strata. Raises `CommandError`."""
    if is_set(using):
        raise CommandError(
            "A restore of this database was not finished, and it may contain forgotten data: run"
            " `manage.py restore` again."
        )
