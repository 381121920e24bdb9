"""The questions. A count stops at MOST: more than that is much, however much it is."""

from collections.abc import Iterator
from datetime import UTC, datetime

from celery import current_app
from django.conf import settings
from django.db import connection
from django.db.models import Count, F, Min, QuerySet
from django.db.models.functions import Extract, Now
from kombu.exceptions import OperationalError
from prometheus_client.core import GaugeMetricFamily, Metric

from chat.models import FileRemoval, Import, Message
from chat.models.imports import ImportState
from config import signs
from config.models import Heartbeat
from memory.layers import cycle
from memory.models import Cursor, Delivery
from memory.models.chunks import IndexCursor

MOST = 10_000
# Seconds until a broker elsewhere counts as away.
BROKER_PATIENCE = 2.0

_DEPTH = "strata_queue_depth", "Tasks that wait in a queue of the broker."
_AGE = "strata_queue_oldest_seconds", "How long the first task of a queue has waited."


def _gauge(name: str, says: str, label: str | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, says, labels=[label] if label else [])


def _waiting(rows: QuerySet, since: str) -> tuple[int, float]:
    """How many rows there are, at most MOST, and how many seconds ago `since` of the first was."""
    some = rows.order_by().annotate(_since=F(since)).values("pk", "_since")[:MOST]
    age = Extract(Now() - Min("_since"), "epoch")
    found = some.aggregate(count=Count("pk"), age=age)
    return found["count"], float(found["age"] or 0)


def due() -> Iterator[Metric]:
    """What the next memory cycle would start."""
    found = cycle.due(datetime.now(UTC))
    family = _gauge("strata_due", "What memory has to do now, at most 500 of each kind.", "kind")
    for kind in ("sessions", "entries", "projects"):
        family.add_metric([kind], len(getattr(found, kind)))
    yield family


def waiting() -> Iterator[Metric]:
    """What waits to be done, or done again, and since when."""
    kinds = {
        "summaries": (Cursor.objects.waiting(), "session__last_activity_at"),
        "deliveries": (Delivery.objects.waiting(), "created_at"),
        "imports": (Import.objects.filter(state__in=_UNDONE), "created_at"),
        "replies": (Message.objects.unfinished(), "created_at"),
        "files": (FileRemoval.objects.all(), "created_at"),
    }
    count = _gauge("strata_waiting", "What is not done yet, at most 10000 of each kind.", "kind")
    age = _gauge("strata_waiting_oldest_seconds", "Since when the oldest of it waits.", "kind")
    for kind, (rows, since) in kinds.items():
        found, seconds = _waiting(rows, since)
        count.add_metric([kind], found)
        age.add_metric([kind], seconds)
    count.add_metric(["indexing"], IndexCursor.objects.due()[:MOST].count())
    yield from (count, age)


_UNDONE = (ImportState.WAITING, ImportState.RUNNING)


def failing() -> Iterator[Metric]:
    """What failed at least once and is tried again."""
    family = _gauge("strata_failing", "What failed and is tried again.", "kind")
    failed = {
        "summaries": Cursor.objects.waiting().filter(failures__gt=0),
        "indexing": IndexCursor.objects.due().filter(failures__gt=0),
        "deliveries": Delivery.objects.waiting().filter(attempts__gt=0),
        "files": FileRemoval.objects.exclude(last_error=""),
    }
    for kind, rows in failed.items():
        family.add_metric([kind], rows[:MOST].count())
    yield family


def parts() -> Iterator[Metric]:
    """When worker and beat were last seen, and somebody who takes from each queue."""
    family = _gauge("strata_seen_seconds", "How long ago a part gave a sign of life.", "part")
    known = ["worker", "beat", *map(signs.queue, settings.QUEUES)]
    ages = Heartbeat.objects.filter(part__in=known).annotate(
        age=Extract(Now() - F("seen_at"), "epoch")
    )
    for part, age in ages.values_list("part", "age"):
        family.add_metric([part], float(age))
    yield family


def queues() -> Iterator[Metric]:
    """The broker's queues, where they are tables of this database."""
    if not settings.BROKER_IN_DATABASE:
        return
    depth, age = _gauge(*_DEPTH, "queue"), _gauge(*_AGE, "queue")
    for queue in settings.QUEUES:
        count, seconds = _queued(f"q_{queue}")
        depth.add_metric([queue], count)
        age.add_metric([queue], seconds)
    yield from (depth, age)


def _queued(table: str) -> tuple[int, float]:
    """How many messages of a queue of pgmq nobody works on, and the age of the first, in seconds.

    A queue is made when it is first used.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"pgmq.{table}"])
        if cursor.fetchone() == (None,):
            return 0, 0
        cursor.execute(
            "SELECT count(*), coalesce(extract(epoch FROM now() - min(enqueued_at)), 0)"
            f" FROM (SELECT enqueued_at FROM pgmq.{table} WHERE vt <= now()"
            f" ORDER BY msg_id LIMIT {MOST})"
        )
        count, seconds = cursor.fetchone()
    return count, float(seconds)


def queues_elsewhere() -> list[Metric] | None:
    """The depth of the queues of another broker, which tells no ages; None when it is away."""
    if settings.BROKER_IN_DATABASE:
        return []
    depth = _gauge(*_DEPTH, "queue")
    with current_app.connection_for_read() as broker:
        try:
            broker.ensure_connection(max_retries=1, timeout=BROKER_PATIENCE)
            for queue in settings.QUEUES:
                told = broker.default_channel.queue_declare(queue, passive=True)
                depth.add_metric([queue], told.message_count)
        except (OperationalError, *broker.connection_errors, *broker.channel_errors):
            return None
    return [depth]


DATABASE = (due, waiting, failing, parts, queues)
