"""Database access beyond the ORM: precompiled queries, work in threads, the read replica."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, ParamSpec, Self, TypeVar
from uuid import UUID, uuid4
from weakref import WeakSet

import psycopg
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.models import QuerySet
from django.db.models.query import get_related_populators
from psycopg import sql

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

FOREIGN_KEY_VIOLATION = "23503"
# PostgreSQL's error codes for "lock not available" and "deadlock detected".
LOCK_CONFLICTS = ("55P03", "40P01")
# Values, by type, that stand for the parameters while SQL is compiled. No query contains them
# otherwise.
PLACEHOLDERS: dict[type, Callable[[int], object]] = {
    str: lambda index: f"placeholder {index}",
    UUID: lambda index: uuid4(),
    int: lambda index: 2_000_000_011 + index,
    list: lambda index: [uuid4()],
    datetime: lambda index: datetime(1, 2, 3, 4, 5, 6, 789, UTC) + timedelta(days=index),
}


# The parameters in SQL that Django has compiled, and escaped percent signs.
PLACES = re.compile(r"%[s%]")


@contextmanager
def logged_failure(event: str, pk: UUID) -> Iterator[None]:
    """Log an error of the block in place of raising it, so that a periodic task continues with its
    next row. `event` contains `%s` for the id of the row.
    """
    try:
        yield
    except Exception:
        # Otherwise, an error of one row would stop all later rows in each run.
        log.exception(event, pk)


class _ServerCursor(ServerBindingCursor):
    def __init__(self, raw_connection: Any, prepare: bool | None, binary: bool) -> None:
        super().__init__(raw_connection)  # type: ignore[call-arg]
        self.prepare, self.binary = prepare, binary

    def execute(self, query: Any, parameters: Any = None) -> Any:
        # The type stubs are those of another database driver.
        return super().execute(query, parameters, prepare=self.prepare, binary=self.binary)  # type: ignore[misc]


def server_cursor(database: Any = connection, prepare: bool = True, binary: bool = False) -> Any:
    """Return a cursor that sends parameters separately from the SQL.

    Unless `prepare` is false, PostgreSQL parses and plans each statement once per connection. With
    a connection pooler they are not prepared (see config.settings.database). Django's own cursors
    insert the values into the SQL, so that each call is a different statement, which psycopg never
    prepares. With `binary`, hundreds of rows with bytes and UUIDs are read in half the time.
    """
    database.ensure_connection()
    wrap = database.make_debug_cursor if database.queries_logged else database.make_cursor
    return wrap(_ServerCursor(database.connection, None if prepare else False, binary))


class PreparedQuery:
    """Runs a `values_list` query with parameters. Its SQL is compiled once per process, and planned
    once per connection.

    Use it only for queries that run for every prompt or every write. docs/recall.md and
    docs/performance.md state the CPU time that this saves.

    `make` returns the queryset. It is called once, with placeholders of the types `kinds`, so the
    SQL must not depend on the values. A parameter that is None matches no row. JSON columns are
    returned as text.
    """

    instances: ClassVar[WeakSet["PreparedQuery"]] = WeakSet()

    def __init__(self, make: Callable[..., QuerySet], *kinds: type) -> None:
        self.make, self.kinds = make, kinds
        self.instances.add(self)

    @classmethod
    def of(cls, *kinds: type) -> Callable[[Callable[..., QuerySet]], Self]:
        """Return a decorator that replaces `make` by the query."""
        return lambda make: cls(make, *kinds)

    @classmethod
    def compile_all(cls) -> None:
        """Compile the queries of all loaded modules. This needs a connection to the database."""
        # Django compiles SELECT FOR UPDATE only in a transaction.
        with transaction.atomic():
            for query in list(cls.instances):
                query.compiled  # noqa: B018

    def __call__(self, *params: object) -> list[tuple]:
        return fetch(*self.bind(*params), prepared=True)

    def bind(self, *params: object) -> tuple[str, list[Any]]:
        """Return the SQL and its parameter values, for use inside another query."""
        statement, indexes = self.compiled
        return statement, [params[index] for index in indexes]

    @cached_property
    def compiled(self) -> tuple[str, list[int]]:
        """The SQL with its constants, and for each of its parameters the index of the argument."""
        placeholders = [PLACEHOLDERS[kind](index) for index, kind in enumerate(self.kinds)]
        self.compiler = self.make(*placeholders).query.get_compiler(DEFAULT_DB_ALIAS)
        compiled, values = self.compiler.as_sql()
        indexes, remaining = [], iter(values)

        def fill(place: re.Match[str]) -> str:
            if place[0] == "%%":
                return "%%"
            value = next(remaining)
            if value in placeholders:
                indexes.append(placeholders.index(value))
                return "%s"
            # A literal, because PostgreSQL cannot always infer the type of a parameter.
            return sql.Literal(value).as_string(None).replace("%", "%%")

        return PLACES.sub(fill, compiled), indexes


class PreparedObjects(PreparedQuery):
    """A `PreparedQuery` that returns model objects, with those of `select_related`."""

    def __call__(self, *params: object) -> list[Any]:
        rows = super().__call__(*params)
        objects = []
        for row in self.compiler.apply_converters(rows, self.converters):
            fields = row[: len(self.names)]
            instance = self.model.from_db(DEFAULT_DB_ALIAS, self.names, fields)
            for populator in self.populators:
                populator.populate(row, instance)
            objects.append(instance)
        return objects

    # Copied from django.db.models.query.ModelIterable.
    @cached_property
    def model(self) -> Any:
        return self.compiler.klass_info["model"]

    @cached_property
    def names(self) -> list[str]:
        """The attributes of the model, which are the first columns of a row."""
        count = len(self.compiler.klass_info["select_fields"])
        return [column.target.attname for column, _, _ in self.compiler.select[:count]]

    @cached_property
    def populators(self) -> list[Any]:
        compiler = self.compiler
        # The type stubs are those of a later version of Django.
        return get_related_populators(  # type: ignore[call-arg]
            compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS
        )

    @cached_property
    def converters(self) -> dict[int, Any]:
        return self.compiler.get_converters([column for column, _, _ in self.compiler.select])


def is_deleted_meanwhile(error: BaseException) -> bool:
    """Return whether a request failed because an object was deleted after the request had read it.

    The request had tried to read or save the object again, or to add a row that refers to it. Entry
    points respond 404.
    """
    # Django raises this error itself if `save` with `update_fields` finds no row.
    if type(error) is DatabaseError and error.__cause__ is None:
        return True
    violation = (
        getattr(error.__cause__, "sqlstate", "") if isinstance(error, IntegrityError) else ""
    )
    return isinstance(error, ObjectDoesNotExist) or violation == FOREIGN_KEY_VIOLATION


def is_lock_conflict(error: OperationalError) -> bool:
    """Return whether a transaction failed because of the locks of another one, so that it can be
    repeated.
    """
    return getattr(error.__cause__, "sqlstate", "") in LOCK_CONFLICTS


def fetch(query: Any, parameters: Any = None, prepared: bool = False) -> list[tuple]:
    """Run SQL and return its rows, an empty list for a statement without a result. If `prepared`,
    use a `server_cursor`.
    """
    with server_cursor() if prepared else connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall() if cursor.description else []


def own_connection(**options: Any) -> psycopg.Connection:
    """Return a new connection to the database, which belongs to no pool and no thread."""
    parameters: Any = connection.get_connection_params() | options
    parameters.pop("pool", None)
    return psycopg.connect(**parameters)


def collect_statistics() -> None:
    """Let PostgreSQL count the rows of its tables, after many were added at once.

    It would do so by itself within minutes. Until then, prepared statements keep plans that were
    made for smaller tables.
    """
    fetch("ANALYZE")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a worker thread. Its database connection is returned to the pool before this
    returns.

    Django's own bridge would keep the connection until the end of the request, which takes minutes
    for a stream. A reply even continues after the end of its request.
    """

    def run() -> T:
        try:
            return work(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)


def release_connections() -> None:
    """Return the database connections of this thread to the pool, before waiting for another host.

    A connection with an open transaction is kept.
    """
    for database in connections.all(initialized_only=True):
        if not database.in_atomic_block:
            database.close()


# The optional read replica lags slightly behind. Rows of `query_replica` must be read again from
# the primary, by id, because only the primary reflects the latest forget requests and hidden
# entries. If the replica is not available, the primary is queried.
REPLICA_ALIAS = "replica"
# After a failure, the replica is not used for this time, because each attempt takes time.
REPLICA_RETRY_S = 30.0
# How long a long read waits for the replica to catch up with the primary.
MAX_REPLICA_WAIT_S = 10.0

_away_until = 0.0
_reads_from: ContextVar[str | None] = ContextVar("reads_from", default=None)


class ReplicaRouter:
    """Sends all queries to the primary, except reads inside `caught_up_replica`."""

    def db_for_read(self, model: Any, **hints: object) -> str | None:
        return _reads_from.get()

    def db_for_write(self, model: Any, **hints: object) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, obj1: Any, obj2: Any, **hints: object) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool:
        return db != REPLICA_ALIAS


def query_replica(query: Callable[[Any], T]) -> tuple[T, bool]:
    """Return the result of `query(connection)`, and whether it came from the replica."""
    if _is_available():
        try:
            return query(connections[REPLICA_ALIAS]), True
        except (OperationalError, InterfaceError) as error:
            _mark_away(error)
    return query(connection), False


@contextmanager
def caught_up_replica() -> Iterator[str]:
    """Within the block, read models from a database that contains everything committed so far.
    Yields its alias.

    It is the replica if it catches up within `MAX_REPLICA_WAIT_S`, otherwise the primary.
    """
    alias = REPLICA_ALIAS if _is_available() and _catches_up() else DEFAULT_DB_ALIAS
    token = _reads_from.set(alias)
    try:
        yield alias
    finally:
        _reads_from.reset(token)


def _is_available() -> bool:
    return REPLICA_ALIAS in settings.DATABASES and time.monotonic() >= _away_until


def _mark_away(cause: object) -> None:
    global _away_until
    _away_until = time.monotonic() + REPLICA_RETRY_S
    log.warning("replica_unavailable cause=%r primary_for_s=%.0f", cause, REPLICA_RETRY_S)
    connections[REPLICA_ALIAS].close()


def _catches_up() -> bool:
    deadline = time.monotonic() + MAX_REPLICA_WAIT_S
    try:
        position = _value(connection, "SELECT pg_current_wal_lsn()")
        while time.monotonic() < deadline:
            # NULL if the server is not a replica.
            query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            if _value(connections[REPLICA_ALIAS], query, str(position)):
                return True
            time.sleep(0.05)
    except (OperationalError, InterfaceError) as error:
        _mark_away(error)
        return False
    log.warning("replica_behind; the primary answers")
    return False


def _value(database: Any, query: str, *params: object) -> Any:
    with database.cursor() as cursor:
        cursor.execute(query, params)
        return cursor.fetchone()[0]
