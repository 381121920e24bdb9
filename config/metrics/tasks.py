"""How long tasks of Celery take, and what became of them."""

import time
from typing import Any

from celery import Task, signals
from prometheus_client import Histogram

TASKS = Histogram(
    "strata_task_duration_seconds",
    "Tasks in the background, by what became of them.",
    ["task", "outcome"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_200),
)


def connect() -> None:
    signals.task_prerun.connect(_begin)
    signals.task_postrun.connect(_end)


def _begin(task: Task, **_: Any) -> None:
    task.request.strata_began = time.perf_counter()


def _end(task: Task, state: str | None = None, **_: Any) -> None:
    began = getattr(task.request, "strata_began", None)
    if began is not None:
        outcome = (state or "unknown").lower()
        TASKS.labels(task.name, outcome).observe(time.perf_counter() - began)
