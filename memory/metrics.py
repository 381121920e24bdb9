"""What is measured of memory."""

from prometheus_client import Histogram

RECALL = Histogram(
    "strata_recall_duration_seconds",
    "From a question to what was found.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
CYCLE = Histogram(
    "strata_cycle_duration_seconds",
    "How long a memory cycle takes to find what is due and to hand it out.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
