"""Heartbeats: workers and beat report that they are alive, even while all task slots are busy."""

import logging
from collections.abc import Iterable
from typing import Any

import psycopg
from celery import bootsteps
from django.conf import settings

from projects.core.database import fetch, own_connection

log = logging.getLogger(__name__)

INTERVAL_S = 20.0
# Short, so that a database that does not respond does not block a worker.
CONNECT_TIMEOUT_S = 5

_UPSERT = """
    INSERT INTO config_heartbeat (part, seen_at) SELECT unnest(%s::text[]), now()
    ON CONFLICT (part) DO UPDATE SET seen_at = excluded.seen_at
"""


def record(components: Iterable[str]) -> None:
    """Store a heartbeat of these components. Raises `DatabaseError`."""
    fetch(_UPSERT, [sorted(components)])


def touch() -> None:
    """Update the time of `HEARTBEAT_FILE`, if set, to report that this process is alive."""
    if settings.HEARTBEAT_FILE:
        settings.HEARTBEAT_FILE.touch()


def queue(name: str) -> str:
    """Return the component under which workers report that they consume the queue `name`."""
    return f"queue:{name}"


class HeartbeatStep(bootsteps.StartStopStep):
    """Celery bootstep that reports a worker and its queues. It runs in the worker's parent process.

    The child processes may all be busy for longer than the interval.
    """

    requires = {"celery.worker.consumer.tasks:Tasks"}

    def __init__(self, consumer: Any, **kwargs: object) -> None:
        super().__init__(consumer, **kwargs)
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        components = ["worker", *map(queue, consumer.app.amqp.queues.consume_from)]
        record_on_own_connection(components)
        self._timer = consumer.timer.call_repeatedly(
            INTERVAL_S, record_on_own_connection, (components,)
        )

    def stop(self, consumer: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def record_on_own_connection(components: list[str]) -> None:
    """Store a heartbeat on a new connection that is closed at once.

    The worker's child processes must not inherit an open connection. A pool is not used either,
    because it has threads, and a process that forks should not have threads.
    """
    touch()
    try:
        with own_connection(connect_timeout=CONNECT_TIMEOUT_S) as database:
            database.execute(_UPSERT, [sorted(components)])
    except psycopg.Error as error:
        log.warning("heartbeat_failed cause=%r", error)
