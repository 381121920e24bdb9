"""Begins the rehearsal: STRATA_SHARDED=1 has every test of a run play in it."""

from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created
from psycopg.sql import Composable

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
        connection.execute_wrappers += [guard, _at_once]


def _at_once(execute, sql: Any, params, many, context):
    """A table that is cut takes no index while others write; in shards each table would."""
    if isinstance(sql, Composable):
        sql = sql.as_string(context["connection"].connection).replace(" CONCURRENTLY", "")
    return execute(sql, params, many, context)
