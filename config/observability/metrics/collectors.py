"""Gauges that are read from the database, the broker and the disk at each scrape.

Each collector runs a few queries with a timeout of one second. Their cost grows with the number of
waiting rows. A collector that fails or times out is left out and reported in
`strata_collector_failed`.
"""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Count, F, Min
from django.db.models.functions import Extract, Now
from kombu import Connection
from kombu.exceptions import OperationalError
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from chat.models import FileRemoval, Import, Message
from chat.models.imports import ImportState
from config.health import heartbeats
from config.health.probes import Probe
from config.models import Heartbeat
from memory.layers import cycle
from memory.models import Cursor, Delivery
from memory.models.chunks import IndexCursor
from projects.core.database import fetch

# The maximum number that is counted, because a larger number would not help an administrator.
MAX_COUNT = 10_000
CACHE_S = 5.0
QUERY_TIMEOUT_MS = 1_000
DATABASE_TIMEOUT_S = 2.0
BROKER_TIMEOUT_S = 2.0
NOT_FOUND = "404"

DatabaseCollector = Callable[[], Iterator[Metric]]


def _gauge(name: str, description: str, label: str | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, description, labels=[label] if label else [])


def _queue_depth() -> GaugeMetricFamily:
    return _gauge("strata_queue_tasks", "Tasks that wait in a queue of the broker.", "queue")


def memory_due() -> Iterator[Metric]:
    """Yield the number of tasks that the next memory cycle would start."""
    work = cycle.due(datetime.now(UTC))
    family = _gauge("strata_memory_due_items", "Due memory work, at most 500 of a kind.", "kind")
    for kind in ("sessions", "entries", "projects"):
        family.add_metric([kind], len(getattr(work, kind)))
    yield family


def pending() -> Iterator[Metric]:
    """Yield the number of unfinished items and the age of the oldest one, by kind."""
    unfinished_imports = (ImportState.WAITING, ImportState.RUNNING)
    kinds = {
        "summaries": (Cursor.objects.waiting(), "session__last_activity_at"),
        "deliveries": (Delivery.objects.waiting(), "created_at"),
        "imports": (Import.objects.filter(state__in=unfinished_imports), "created_at"),
        "replies": (Message.objects.unfinished(), "created_at"),
        # Without removals that wait for the row of a new file.
        "files": (FileRemoval.objects.exclude(attempts=0, next_try_at__gt=Now()), "created_at"),
    }
    count = _gauge("strata_pending_items", "Unfinished items, at most 10000 of a kind.", "kind")
    age = _gauge("strata_pending_oldest_age_seconds", "Age of the oldest unfinished item.", "kind")
    for kind, (rows, since) in kinds.items():
        limited = rows.order_by().annotate(_since=F(since)).values("pk", "_since")[:MAX_COUNT]
        oldest = Extract(Now() - Min("_since"), "epoch")
        result = limited.aggregate(count=Count("pk"), age=oldest)
        count.add_metric([kind], result["count"])
        age.add_metric([kind], float(result["age"] or 0))
    count.add_metric(["indexing"], IndexCursor.objects.due()[:MAX_COUNT].count())
    yield from (count, age)


def retrying() -> Iterator[Metric]:
    """Yield the number of items that have failed and will be retried."""
    family = _gauge("strata_retrying_items", "Items that failed and will be retried.", "kind")
    failed = {
        "summaries": Cursor.objects.waiting().filter(failures__gt=0),
        "indexing": IndexCursor.objects.due().filter(failures__gt=0),
        "deliveries": Delivery.objects.waiting().filter(attempts__gt=0),
        "files": FileRemoval.objects.exclude(last_error=""),
    }
    for kind, rows in failed.items():
        family.add_metric([kind], rows[:MAX_COUNT].count())
    yield family


def heartbeat_ages() -> Iterator[Metric]:
    """Yield the age of the last heartbeats of worker, beat and the consumers of each queue."""
    family = _gauge("strata_heartbeat_age_seconds", "Time since the last heartbeat.", "component")
    known = ["worker", "beat", *map(heartbeats.queue, settings.QUEUES)]
    ages = Heartbeat.objects.filter(part__in=known).annotate(
        age=Extract(Now() - F("seen_at"), "epoch")
    )
    for part, age in ages.values_list("part", "age"):
        family.add_metric([part], float(age))
    yield family


def queues() -> Iterator[Metric]:
    """Yield length and age of the queues, if the broker uses this database."""
    if not settings.BROKER_IN_DATABASE:
        return
    depth = _queue_depth()
    age = _gauge("strata_queue_oldest_task_age_seconds", "Age of a queue's first task.", "queue")
    for queue in settings.QUEUES:
        count, seconds = _pgmq_queue(f"q_{queue}")
        depth.add_metric([queue], count)
        age.add_metric([queue], seconds)
    yield from (depth, age)


def _pgmq_queue(table: str) -> tuple[int, float]:
    """Return the number of unclaimed messages, and the age of the first one in seconds."""
    # The table of a queue is created on first use.
    if fetch("SELECT to_regclass(%s)", [f"pgmq.{table}"]) == [(None,)]:
        return 0, 0
    [[count, seconds]] = fetch(
        "SELECT count(*), coalesce(extract(epoch FROM now() - min(enqueued_at)), 0)"
        f" FROM (SELECT enqueued_at FROM pgmq.{table} WHERE vt <= now()"
        f" ORDER BY msg_id LIMIT {MAX_COUNT})"
    )
    return count, float(seconds)


DATABASE_COLLECTORS: tuple[DatabaseCollector, ...] = (
    *(memory_due, pending, retrying, heartbeat_ages, queues),
)


class StateCollector(Collector):
    """Prometheus collector that caches its result for CACHE_S. All scrapers share the cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._metrics: list[Metric] = []
        self._expires_at = 0.0

    def describe(self) -> list[Metric]:
        # Without this method, registering the collector would already run it.
        return []

    def collect(self) -> list[Metric]:
        with self._lock:
            if time.monotonic() >= self._expires_at:
                self._metrics = list(_collect())
                self._expires_at = time.monotonic() + CACHE_S
            return self._metrics


def _collect() -> Iterator[Metric]:
    failed = _gauge("strata_collector_failed", "1 for a collector that failed.", "collector")
    is_reachable = _database_is_reachable()
    for collector in DATABASE_COLLECTORS:
        metrics = _run(collector) if is_reachable else None
        yield from metrics or ()
        failed.add_metric([collector.__name__], float(metrics is None))
    metrics = external_queues()
    yield from metrics or ()
    failed.add_metric(["external_queues"], float(metrics is None))
    yield failed
    usage = shutil.disk_usage(settings.DATA_DIR)
    disk = _gauge("strata_disk_free_ratio", "Free share of the disk of STRATA_DATA_DIR, 0 to 1.")
    disk.add_metric([], usage.free / usage.total)
    yield disk


_database = Probe(lambda: bool(fetch("SELECT 1")))


def _database_is_reachable() -> bool:
    """Check the connection once, so that not every collector waits for an unreachable database."""
    try:
        return _database.start().result(DATABASE_TIMEOUT_S, default=False)
    except DatabaseError:
        return False


def _run(collector: DatabaseCollector) -> list[Metric] | None:
    try:
        with transaction.atomic():
            fetch(f"SET LOCAL statement_timeout = {QUERY_TIMEOUT_MS}")
            return list(collector())
    except DatabaseError:
        return None


def external_queues() -> list[Metric] | None:
    """Return the queue lengths of a broker outside of the database; None if it is unreachable."""
    if settings.BROKER_IN_DATABASE:
        return []
    depth = _queue_depth()
    with current_app.connection_for_read() as broker:
        try:
            broker.ensure_connection(max_retries=1, timeout=BROKER_TIMEOUT_S)
            for queue in settings.QUEUES:
                depth.add_metric([queue], _queue_length(broker, queue))
        except (OperationalError, *broker.connection_errors, *broker.channel_errors):
            return None
    return [depth]


def _queue_length(broker: Connection, queue: str) -> int:
    """Return the number of tasks that wait in a queue. Redis has no queues that are empty."""
    # A channel for each queue, because RabbitMQ closes the channel if there is no such queue.
    with broker.channel() as channel:
        try:
            return int(channel.queue_declare(queue, passive=True).message_count)
        except broker.channel_errors as error:
            if str(getattr(error, "reply_code", "")) != NOT_FOUND:
                raise
            return 0
