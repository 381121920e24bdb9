"""The moment at which the layers' history says that something happened."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import connection


@contextmanager
def at(now: datetime) -> Iterator[None]:
    """What is written to entries inside stands from `now` on: the moment of the cycle under way.

    To be used in a transaction.
    """
    _set(now.isoformat())
    yield
    _set("")


def _set(moment: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('strata.now', %s, true)", [moment])
