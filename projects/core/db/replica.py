"""The read replica, where one is set: a copy of the database that is some moments behind.

What is found in it must be read again by its id in the primary, which alone knows what was
forgotten or hidden since. While it is away, the primary answers in its place.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections

T = TypeVar("T")

log = logging.getLogger(__name__)

ALIAS = "replica"
# Seconds for which a replica that was away is not asked again, since asking takes time.
PATIENCE = 30.0
# Seconds that a long read waits for the replica to come as far as the primary.
LONGEST_WAIT = 10.0

_away_until = 0.0
_reads_from: ContextVar[str | None] = ContextVar("reads_from", default=None)


class Router:
    """Writes go to the primary, and reads too, unless they stand inside `caught_up`."""

    def db_for_read(self, model: Any, **hints: object) -> str | None:
        return _reads_from.get()

    def db_for_write(self, model: Any, **hints: object) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: Any, other: Any, **hints: object) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool:
        return db != ALIAS


def ask(query: Callable[[Any], T]) -> tuple[T, bool]:
    """What `query` reads from a database connection, and whether that was the replica's."""
    if _is_there():
        try:
            return query(connections[ALIAS]), True
        except (OperationalError, InterfaceError) as error:
            _give_up(error)
    return query(connection), False


@contextmanager
def caught_up() -> Iterator[str]:
    """The alias of a database that holds all that is committed by now; reads of models go there.

    The replica's, if it comes so far in time.
    """
    alias = ALIAS if _is_there() and _comes_up() else DEFAULT_DB_ALIAS
    token = _reads_from.set(alias)
    try:
        yield alias
    finally:
        _reads_from.reset(token)


def _is_there() -> bool:
    return ALIAS in settings.DATABASES and time.monotonic() >= _away_until


def _give_up(cause: object) -> None:
    global _away_until
    _away_until = time.monotonic() + PATIENCE
    log.warning("replica_away cause=%r; the primary answers for %.0f s", cause, PATIENCE)
    connections[ALIAS].close()


def _comes_up() -> bool:
    """Whether the replica comes as far as the primary is now, before long."""
    deadline = time.monotonic() + LONGEST_WAIT
    try:
        [now] = _row(connection, "SELECT pg_current_wal_lsn()")
        while time.monotonic() < deadline:
            # NULL from what is no replica.
            [there] = _row(
                connections[ALIAS], "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", str(now)
            )
            if there:
                return True
            time.sleep(0.05)
    except (OperationalError, InterfaceError) as error:
        _give_up(error)
        return False
    log.warning("replica_behind; the primary answers")
    return False


def _row(database: Any, query: str, *given: object) -> tuple:
    with database.cursor() as cursor:
        cursor.execute(query, given)
        return cursor.fetchone()
