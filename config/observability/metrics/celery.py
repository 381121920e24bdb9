"""Metrics of tasks and of failures. Failures are counted from log lines."""

import logging
import re
import time
from typing import Any

from celery import Task, signals
from prometheus_client import Counter, Histogram

TASKS = Histogram(
    "strata_task_duration_seconds",
    "Duration of background tasks, by outcome.",
    ["task", "outcome"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_200),
)
FAILURES = Counter("strata_failures", "Warnings and errors in the log, by event name.", ["event"])
# The maximum number of values of the label. The code has far fewer event names.
MAX_EVENTS = 100
EVENT_NAME = re.compile(r"[a-z]{1,40}(?:_[a-z]{1,40}){1,9}")
# Events that count as failures although they are below WARNING: the receiver failed, not Strata.
EXTRA_EVENTS = ("webhook_delivery_failed",)
OTHER = "other"
_events: set[str] = set()


def connect() -> None:
    signals.task_prerun.connect(_start_timer)
    signals.task_postrun.connect(_observe_duration)


def _start_timer(task: Task, **_: Any) -> None:
    task.request.strata_started_at = time.perf_counter()


def _observe_duration(task: Task, state: str | None = None, **_: Any) -> None:
    started_at = getattr(task.request, "strata_started_at", None)
    if started_at is not None:
        outcome = (state or "unknown").lower()
        TASKS.labels(task.name, outcome).observe(time.perf_counter() - started_at)


class FailureCountHandler(logging.Handler):
    """Log handler that counts warnings and errors."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.msg
        event = str(message.get("event") if isinstance(message, dict) else message)
        event = event.partition(" ")[0]
        if record.levelno < logging.WARNING and event not in EXTRA_EVENTS:
            return
        if EVENT_NAME.fullmatch(event) and len(_events) < MAX_EVENTS:
            _events.add(event)
        FAILURES.labels(event if event in _events else OTHER).inc()
