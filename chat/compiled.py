"""Queries that stand behind every message: their SQL is worked out once, not each time.

Django takes several times as long to put such a query into words as PostgreSQL takes to answer it.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.models import QuerySet

# What stands for a parameter while the SQL is worked out: values that occur nowhere else.
STAND_INS: dict[type, Callable[[int], object]] = {
    UUID: lambda place: uuid4(),
    int: lambda place: 2_000_000_011 + place,
    datetime: lambda place: datetime(1, 2, 3, 4, 5, 6, 789, UTC) + timedelta(days=place),
}


def _cursor() -> Any:
    """One that sends parameters beside the SQL, so that the driver has it prepared after a few
    times (`prepare_threshold`): to plan such a query takes as long as to answer it.
    """
    if connection.queries_logged:
        return connection.cursor()
    connection.ensure_connection()
    bare: Any = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
    return connection.make_cursor(bare)


class Compiled:
    """The rows of a queryset of values, by its parameters of the given kinds.

    `make` is called once, with stand-ins: what it makes must depend on nothing else. A parameter
    may be None, which in SQL equals nothing. Columns come as the driver reads them.
    """

    def __init__(self, make: Callable[..., QuerySet], *kinds: type) -> None:
        self._make, self._kinds = make, kinds

    def __call__(self, *given: object) -> list[tuple]:
        sql, fill = self._compiled
        with _cursor() as cursor:
            cursor.execute(sql, fill(given))
            return cursor.fetchall()

    @cached_property
    def _compiled(self) -> tuple[str, Callable[[Sequence[Any]], list[Any]]]:
        """The SQL, and what makes its parameters of those that are given."""
        stand_ins = [STAND_INS[kind](place) for place, kind in enumerate(self._kinds)]
        sql, params = self._make(*stand_ins).query.sql_with_params()
        places = [stand_ins.index(one) if one in stand_ins else None for one in params]

        def fill(given: Sequence[Any]) -> list[Any]:
            filled = zip(params, places, strict=True)
            return [one if place is None else given[place] for one, place in filled]

        return sql, fill
