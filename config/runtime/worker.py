"""The worker processes of `manage.py up`. Their tasks run in threads."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from django.conf import settings
from kombu import Connection

from config.broker.scheduler import BeatStep
from config.celery import app
from config.health import heartbeats
from config.runtime.threads import TaskPool
from config.runtime.watchdog import HEARTBEAT_S

log = logging.getLogger(__name__)


def work(
    name: str, queues: Sequence[str], heartbeat: Callable[[], None], with_beat: bool = False
) -> None:
    """Run the tasks of `queues` until SIGTERM, in one thread for each slot of the queues.

    The loop that receives tasks calls `heartbeat`.
    """
    if with_beat:
        app.steps["worker"].add(BeatStep)
    if settings.TRACES:
        # Imported on demand, because its packages are optional.
        from config.observability.tracing import start_in_worker

        start_in_worker()
    worker = app.Worker(
        hostname=f"{name}@%h",
        pool_cls=TaskPool,
        consumer_cls=partial(WatchedConsumer, heartbeat),
        concurrency=sum(settings.QUEUE_SLOTS[queue] for queue in queues),
        queues=queues,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    raise SystemExit(worker.exitcode)


class PatientConsumer(Consumer):
    """Celery's consumer, but it waits for the broker for any time, and calls `tick` meanwhile."""

    def tick(self) -> None:
        """Update the file for probes. While the broker is away, `HeartbeatStep` does not."""
        heartbeats.touch()

    def ensure_connected(self, conn: Connection) -> Connection:
        """Return the connection once the broker accepts it."""

        def report_failure(error: Exception, seconds: float) -> None:
            log.error("broker_unavailable cause=%r retry_s=%.0f", error, seconds)

        # Called every second until the next attempt.
        def before_retry() -> None:
            self.tick()
            maybe_shutdown()

        self.tick()
        return conn.ensure_connection(report_failure, callback=before_retry)


class WatchedConsumer(PatientConsumer):
    """A consumer whose loop calls `heartbeat`, even while it waits for the broker.

    It also calls `tend` of the pool.
    """

    def __init__(self, heartbeat: Callable[[], None], *args: Any, **kwargs: Any) -> None:
        self._heartbeat = heartbeat
        self._tended_at = time.monotonic()
        super().__init__(*args, **kwargs)

    def tick(self) -> None:
        self._heartbeat()
        if time.monotonic() - self._tended_at > HEARTBEAT_S / 2:
            self._tended_at = time.monotonic()
            self.pool.tend()

    def perform_pending_operations(self) -> None:
        """Call `heartbeat` in each iteration of the loop, for brokers without an event loop."""
        self.tick()
        super().perform_pending_operations()

    def register_with_event_loop(self, hub: Any) -> None:
        self.tick()
        hub.call_repeatedly(HEARTBEAT_S, self.tick)
        super().register_with_event_loop(hub)
