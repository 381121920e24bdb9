"""Log lines of one form for all processes and libraries: an event name and named values.

No line contains text that users or models wrote, an address or a secret.
"""

import logging
from typing import Any

import structlog

from config.observability.logging.processors import redact, render

# Loggers that follow the configured level. Libraries log from WARNING, because at lower levels
# they log whole requests.
OWN_LOGGERS = ("config", "projects", "chat", "memory", "django_structlog")
# Our own lines report the same events without text.
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
        # `redact` formats the message itself, because it decides which values may appear.
        "use_get_message": False,
        "pass_foreign_args": True,
        "processors": [redact, render(as_json)],
    }
    # Failures are counted even if the level hides them.
    lowest = min(logging.getLevelName(level), logging.INFO)
    loggers: dict[str, Any] = {name: {"level": lowest} for name in OWN_LOGGERS}
    # These loggers have handlers of their own.
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
