"""Queries that stand behind every message: their SQL is worked out once, not each time.

Django takes several times as long to put such a query into words as PostgreSQL takes to answer it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.models import Lookup, Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.models.sql import Query, UpdateQuery

M = TypeVar("M", bound=Model)

# What stands for a parameter while the SQL is worked out: values that occur nowhere else.
STAND_INS: dict[type, Callable[[int], object]] = {
    UUID: lambda place: uuid4(),
    int: lambda place: 2_000_000_011 + place,
    # Of ids: see Among.
    list: lambda place: [uuid4()],
    datetime: lambda place: datetime(1, 2, 3, 4, 5, 6, 789, UTC) + timedelta(days=place),
}


def _cursor() -> Any:
    """One that sends parameters beside the SQL, so that the driver has it prepared
    (`prepare_threshold`): to plan such a query takes as long as to answer it.
    """
    connection.ensure_connection()
    bare: Any = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
    made = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return made(bare)


class Among(Lookup):
    """Whether a column is one of a list: as `__in`, but the SQL is the same for any number."""

    lookup_name = "among"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, params = self.process_lhs(compiler, connection)
        return f"{column} = ANY(%s)", (*params, self.rhs)


class _Statement:
    """`make` gives a queryset, and is called once, with stand-ins for parameters of the given
    kinds: what it makes must depend on nothing else. A parameter may be None, which in SQL equals
    nothing.
    """

    def __init__(self, make: Callable[..., Any], *kinds: type) -> None:
        self._make, self._kinds = make, kinds

    def _query(self, *given: object) -> Query:
        rows: QuerySet = self._make(*given)
        return rows.query

    def _cursor(self) -> Any:
        return _cursor()

    @contextmanager
    def _executed(self, given: Sequence[Any]) -> Iterator[Any]:
        _, sql, fill = self._compiled
        with self._cursor() as cursor:
            cursor.execute(sql, fill(given))
            yield cursor

    def _rows(self, given: Sequence[Any]) -> list[tuple]:
        with self._executed(given) as cursor:
            rows: list[tuple] = cursor.fetchall()
            return rows

    @cached_property
    def _compiled(self) -> tuple[Any, str, Callable[[Sequence[Any]], list[Any]]]:
        """What compiled it, the SQL, and what makes its parameters of those that are given."""
        stand_ins = [STAND_INS[kind](place) for place, kind in enumerate(self._kinds)]
        compiler = self._query(*stand_ins).get_compiler(using=DEFAULT_DB_ALIAS)
        sql, params = compiler.as_sql()
        places = [stand_ins.index(one) if one in stand_ins else None for one in params]

        def fill(given: Sequence[Any]) -> list[Any]:
            filled = zip(params, places, strict=True)
            return [one if place is None else given[place] for one, place in filled]

        return compiler, sql, fill


class Compiled(_Statement):
    """The rows of a queryset of values, by its parameters. Columns come as the driver reads
    them.
    """

    def __call__(self, *given: object) -> list[tuple]:
        return self._rows(given)


class Replanned(Compiled):
    """The same, for a query whose best plan hangs on what it is given: planned anew each time."""

    def _cursor(self) -> Any:
        return connection.cursor()


class CompiledUpdate(_Statement):
    """Changes rows, and returns how many: `make` gives a queryset, and what its columns get."""

    def __call__(self, *given: object) -> int:
        with self._executed(given) as cursor:
            changed: int = cursor.rowcount
            return changed

    def _query(self, *given: object) -> Query:
        rows, values = self._make(*given)
        query: UpdateQuery = rows.query.chain(UpdateQuery)
        query.add_update_values(values)
        return query


class CompiledObjects(_Statement, Generic[M]):
    """The objects of a queryset, by its parameters, with those that it selects along."""

    def __call__(self, *given: object) -> list[M]:
        read = self._read
        return [read(row) for row in self._rows(given)]

    def first(self, *given: object) -> M | None:
        return next(iter(self(*given)), None)

    def _cursor(self) -> Any:
        # It reads every column of a table: what is prepared would be refused once a migration,
        # while this version serves, has made one of them longer.
        return connection.cursor()

    @cached_property
    def _read(self) -> Callable[[tuple], M]:
        """As Django's own ModelIterable does it."""
        compiler, _, _ = self._compiled
        told, select = compiler.klass_info, compiler.select
        converters = compiler.get_converters([column for column, *_ in select])
        first, last = told["select_fields"][0], told["select_fields"][-1] + 1
        names = [column.target.attname for column, *_ in select[first:last]]
        # The stubs are those of a later Django.
        others = get_related_populators(told, select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]

        def read(row: tuple) -> M:
            [values] = compiler.apply_converters([row], converters)
            found: M = told["model"].from_db(DEFAULT_DB_ALIAS, names, values[first:last])
            for other in others:
                other.populate(values, found)
            return found

        return read
