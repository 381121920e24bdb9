"""The optional read replica: a copy of the database that lags by some moments.

Rows from it must be read again by their ids in the primary, which alone reflects what was
forgotten or hidden since. When the replica is away, the primary answers.
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
# After a failure the replica is not tried for this time, since each attempt takes time.
RETRY_AFTER_S = 30.0
# How long a long read waits until the replica has caught up with the primary.
MAX_WAIT_S = 10.0

_away_until = 0.0
_reads_from: ContextVar[str | None] = ContextVar("reads_from", default=None)


class ReplicaRouter:
    """Sends writes to the primary, and reads too, except inside `caught_up_replica`."""

    def db_for_read(self, model: Any, **hints: object) -> str | None:
        return _reads_from.get()

    def db_for_write(self, model: Any, **hints: object) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, obj1: Any, obj2: Any, **hints: object) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool:
        return db != ALIAS


def query_replica(query: Callable[[Any], T]) -> tuple[T, bool]:
    """Return the result of `query(connection)`, and whether it came from the replica."""
    if _is_available():
        try:
            return query(connections[ALIAS]), True
        except (OperationalError, InterfaceError) as error:
            _mark_away(error)
    return query(connection), False


@contextmanager
def caught_up_replica() -> Iterator[str]:
    """Read models from a database that holds everything committed by now; yield its alias.

    It is the replica if that catches up within `MAX_WAIT_S`, else the primary.
    """
    alias = ALIAS if _is_available() and _catches_up() else DEFAULT_DB_ALIAS
    token = _reads_from.set(alias)
    try:
        yield alias
    finally:
        _reads_from.reset(token)


def _is_available() -> bool:
    return ALIAS in settings.DATABASES and time.monotonic() >= _away_until


def _mark_away(cause: object) -> None:
    global _away_until
    _away_until = time.monotonic() + RETRY_AFTER_S
    log.warning("replica_unavailable cause=%r primary_for_s=%.0f", cause, RETRY_AFTER_S)
    connections[ALIAS].close()


def _catches_up() -> bool:
    deadline = time.monotonic() + MAX_WAIT_S
    try:
        position = _value(connection, "SELECT pg_current_wal_lsn()")
        while time.monotonic() < deadline:
            # NULL from a server that is no replica.
            query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            if _value(connections[ALIAS], query, str(position)):
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
