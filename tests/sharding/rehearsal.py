"""Begins the rehearsal: STRATA_SHARDED=1 has every test of a run play in it."""

from django.db import connection
from django.db.backends.signals import connection_created

from tests.sharding import joins, tables
from tests.sharding.guard import guard


def begin() -> None:
    tables.cut()
    joins.begin()
    connection_created.connect(_watch)
    _watch(connection=connection)


def _watch(connection, **kwargs: object) -> None:
    """Whichever thread connects."""
    if guard not in connection.execute_wrappers:
        connection.execute_wrappers.append(guard)
