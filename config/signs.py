"""Signs of life: each part tells of itself, however long its tasks take."""

import logging
from collections.abc import Iterable
from typing import Any

import psycopg
from celery import bootsteps
from django.db import connection

log = logging.getLogger(__name__)

# Seconds between two signs of a worker.
INTERVAL = 20.0
# Seconds. A database that does not answer must not keep a worker from its messages.
PATIENCE = 5

_NOTE = """
    INSERT INTO config_heartbeat (part, seen_at) SELECT unnest(%s::text[]), now()
    ON CONFLICT (part) DO UPDATE SET seen_at = excluded.seen_at
"""


def note(parts: Iterable[str]) -> None:
    """Writes down that these parts live. Raises DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [sorted(parts)])


def queue(name: str) -> str:
    """The part that stands for a queue somebody takes from."""
    return f"queue:{name}"


class SignsOfLife(bootsteps.StartStopStep):
    """A worker's parent process tells of itself and of its queues, since all its children may be
    busy for long.
    """

    requires = {"celery.worker.consumer.tasks:Tasks"}

    def __init__(self, consumer: Any, **kwargs: object) -> None:
        super().__init__(consumer, **kwargs)
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        parts = ["worker", *map(queue, consumer.app.amqp.queues.consume_from)]
        _note_alone(parts)
        self._timer = consumer.timer.call_repeatedly(INTERVAL, _note_alone, (parts,))

    def stop(self, consumer: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _note_alone(parts: list[str]) -> None:
    """On a connection that is closed at once: the children must not inherit it, and a pool has
    threads, which a process that forks is better without.
    """
    connection_of_its_own: Any = connection.get_connection_params() | {"connect_timeout": PATIENCE}
    connection_of_its_own.pop("pool", None)
    try:
        with psycopg.connect(**connection_of_its_own) as alone:
            alone.execute(_NOTE, [sorted(parts)])
    except psycopg.Error as error:
        log.warning("no_sign_of_life cause=%r", error)
