"""A mark in a database whose restore is not over: what was forgotten may be in it still.

It is set in the transaction that restores the tables, and taken away when all is done.
"""

from django.core.management.base import CommandError
from django.db import connections

TABLE = "restore_under_way"


def is_set(using: str = "default") -> bool:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{TABLE}"])
        return bool(cursor.fetchone()[0])


def take_away() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(f"DROP TABLE public.{TABLE}")


def refuse(using: str, **kwargs: object) -> None:
    """Before migrations, and so before a start. Raises CommandError."""
    if is_set(using):
        raise CommandError(
            "A restore of this database was not finished, and what was forgotten may be in it"
            " still: run `manage.py restore` again."
        )
