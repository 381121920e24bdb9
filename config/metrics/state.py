"""What is the case just now, asked when somebody looks: what waits, since when, and who works.

Each question is one query whose cost grows with what waits, and no longer than a second: what is
not answered by then is left out, and said to be.
"""

import shutil
import threading
import time
from collections.abc import Callable, Iterator

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from config.metrics import questions
from config.probes import Probe

# Seconds for which an answer holds, whoever asks.
FRESH = 5.0
PATIENCE_MS = 1_000
# Seconds until a database that says nothing counts as away.
AWAY_AFTER = 2.0

Question = Callable[[], Iterator[Metric]]


class State(Collector):
    """Asks at most every few seconds, however many look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: list[Metric] = []
        self._until = 0.0

    def describe(self) -> list[Metric]:
        # Else it would be asked when it is registered.
        return []

    def collect(self) -> list[Metric]:
        with self._lock:
            if time.monotonic() >= self._until:
                self._known = list(_all())
                self._until = time.monotonic() + FRESH
            return self._known


def _can_be_asked() -> bool:
    """Whether the database answers; where it does not, each question would wait for it anew."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


_database = Probe(_can_be_asked)


def _all() -> Iterator[Metric]:
    unanswered = GaugeMetricFamily(
        "strata_unanswered", "1 for what could not be asked just now.", labels=["question"]
    )
    answers_at_all = _answers_at_all()
    for question in questions.DATABASE:
        answers = _asked(question) if answers_at_all else None
        yield from answers or ()
        unanswered.add_metric([question.__name__], float(answers is None))
    broker = questions.queues_elsewhere()
    yield from broker or ()
    unanswered.add_metric(["queues_elsewhere"], float(broker is None))
    yield unanswered
    yield _disk()


def _answers_at_all() -> bool:
    try:
        return _database.begin().within(AWAY_AFTER, otherwise=False)
    except DatabaseError:
        return False


def _asked(question: Question) -> list[Metric] | None:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE_MS}")
            return list(question())
    except DatabaseError:
        return None


def _disk() -> Metric:
    usage = shutil.disk_usage(settings.DATA_DIR)
    family = GaugeMetricFamily(
        "strata_disk_free_ratio", "How much of the disk with STRATA_DATA_DIR is free, 0 to 1."
    )
    family.add_metric([], usage.free / usage.total)
    return family
