"""Prometheus metrics of memory."""

from prometheus_client import Histogram

RECALL = Histogram(
    "strata_recall_duration_seconds",
    "Time from a recall query to its results.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
CYCLE = Histogram(
    "strata_memory_cycle_duration_seconds",
    "Time a memory cycle takes to find what is due and to start the tasks.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
