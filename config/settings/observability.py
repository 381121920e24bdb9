"""Settings of logs, metrics and traces (see docs/operations.md)."""

import logging as std_logging
import os
import sys
from math import inf
from pathlib import Path
from typing import Annotated, Literal

from config.observability import logging
from config.settings.env import (
    Http,
    Variables,
    folder_error,
    generated_secret,
    keep_out_of_logs,
    load,
    lower,
    private_folder,
    read_secret,
    require_packages,
    var,
)
from config.settings.security import DATA_DIR


class LogVariables(Variables):
    title = "Logs, metrics and traces"

    log_level: Annotated[Literal["debug", "info", "warning", "error", "critical"], lower] = var(
        "STRATA_LOG_LEVEL",
        "info",
        "one of DEBUG, INFO, WARNING, ERROR, CRITICAL",
        "The lowest level that is logged.",
    )
    log_format: Annotated[Literal["text", "json"], lower] = var(
        "STRATA_LOG_FORMAT",
        "text",
        "text or json",
        "`json` logs one JSON object a line.",
        example="json",
    )
    metrics_token: str = var(
        "STRATA_METRICS_TOKEN",
        "",
        "a long random text",
        "The token that opens `/metrics`.",
        shown_default="made on the first start",
        secret=True,
    )
    metrics_dir: Path | None = var(
        "PROMETHEUS_MULTIPROC_DIR",
        None,
        "the path of a folder",
        "The folder in which processes share their counts. `up` sets it.",
        shown_default="set by `up`",
    )
    heartbeat_file: Path | None = var(
        "STRATA_HEARTBEAT_FILE",
        None,
        "the path of a file",
        "`run worker` and `run beat` update the time of this file while they are alive, for probes "
        "of containers.",
        example="/tmp/heartbeat",
        shown_default="none",
    )
    traces_url: Http = var(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "",
        "the address of a collector",
        "An OpenTelemetry collector for traces. Requires the extra `tracing`.",
        example="http://collector.example.org:4318",
        shown_default="none",
    )


_env = load(LogVariables)
read_secret("OTEL_EXPORTER_OTLP_HEADERS")
METRICS_TOKEN = _env.metrics_token or generated_secret(DATA_DIR / "metrics_token")
keep_out_of_logs(METRICS_TOKEN)
# The folder in which processes share their metrics, so that /metrics shows all of them. Without it,
# each process has separate metrics. `up` sets it for its processes.
METRICS_DIR = _env.metrics_dir
if METRICS_DIR is None and sys.argv[1:2] == ["up"]:
    METRICS_DIR = DATA_DIR / "metrics"
if METRICS_DIR:
    try:
        private_folder(METRICS_DIR)
    except OSError as _error:
        raise folder_error("PROMETHEUS_MULTIPROC_DIR", _error) from None
HEARTBEAT_FILE = _env.heartbeat_file
PROMETHEUS_LATENCY_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, inf)
TRACES = _env.traces_url
if TRACES:
    require_packages(
        "opentelemetry.exporter.otlp.proto.http", "tracing", "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    # The packages read these variables themselves.
    os.environ.setdefault("OTEL_SERVICE_NAME", "strata")
# Each process logs to its standard error.
LOGGING = logging.configuration(_env.log_level, _env.log_format == "json")
DJANGO_STRUCTLOG_CELERY_DEFAULT_LOG_LEVEL = std_logging.DEBUG
