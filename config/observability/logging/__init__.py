"""Logging configuration: the same format for all processes and libraries, an event name with
values.

Log lines contain no text of users or models, no IP addresses and no secrets.
"""

import logging
from typing import Any

import structlog

from config.observability.logging.processors import redact, render

# Loggers that use the configured level. All others log only from WARNING on, because libraries log
# complete requests at lower levels.
OWN_LOGGERS = ("config", "projects", "chat", "memory", "django_structlog")
# Loggers that are switched off, because Strata logs the same events without user text.
SILENCED_LOGGERS = ("celery.app.trace", "django.request", "uvicorn.access")

_shared: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configuration(level: str, as_json: bool) -> dict[str, Any]:
    """Return Django's LOGGING setting, for lines of at least `level`, as text or JSON."""
    level = level.upper()
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _shared,
        # False, because `redact` formats the message: it decides which values are logged.
        "use_get_message": False,
        "pass_foreign_args": True,
        "processors": [redact, render(as_json)],
    }
    # Handlers get all levels from INFO on: failures are counted even if they are not logged.
    lowest = min(logging.getLevelName(level), logging.INFO)
    loggers: dict[str, Any] = {name: {"level": lowest} for name in OWN_LOGGERS}
    # Loggers that have their own handlers by default.
    for name in ("django", "django.server", "uvicorn", "uvicorn.error", "celery"):
        loggers[name] = {"handlers": [], "propagate": True, "level": "NOTSET"}
    for name in SILENCED_LOGGERS:
        loggers[name] = {"handlers": [], "propagate": False, "level": logging.CRITICAL + 1}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {
            "console": {"class": "logging.StreamHandler", "formatter": "line", "level": level},
            "failures": {"class": "config.observability.metrics.celery.FailureCountHandler"},
        },
        "root": {"handlers": ["console", "failures"], "level": "WARNING"},
        "loggers": loggers,
    }
