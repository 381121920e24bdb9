"""One line for each thing that happened, of every process and library in the same form: an event,
and named values. No text that people or models wrote, no address and no secret stands in it.
"""

import logging
from typing import Any

import structlog

from config.logs.lines import lines
from config.logs.telling import fields

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
# Whose lines heed the level that is set. Libraries tell what is wrong, whatever it is: on finer
# levels they write down requests as a whole.
OURS = ("config", "projects", "chat", "memory", "django_structlog")
# What they tell stands in lines of ours, without texts.
SILENT = ("celery.app.trace", "django.request", "uvicorn.access")

_shared: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configuration(level: str, as_json: bool) -> dict[str, Any]:
    """Django's LOGGING, for lines of at least `level`, readable or as JSON."""
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
        # What a record says is put together by `fields`, when it is known what it may say.
        "use_get_message": False,
        "pass_foreign_args": True,
        "processors": [fields, lines(as_json)],
    }
    # Failures are counted whether or not they are shown.
    finest = min(logging.getLevelName(level), logging.INFO)
    loggers: dict[str, Any] = {name: {"level": finest} for name in OURS}
    # They bring handlers of their own.
    for name in ("django", "django.server", "uvicorn", "uvicorn.error", "celery"):
        loggers[name] = {"handlers": [], "propagate": True, "level": "NOTSET"}
    for name in SILENT:
        loggers[name] = {"handlers": [], "propagate": False, "level": logging.CRITICAL + 1}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {
            "console": {"class": "logging.StreamHandler", "formatter": "line", "level": level},
            "failures": {"class": "config.metrics.failures.Counting"},
        },
        "root": {"handlers": ["console", "failures"], "level": "WARNING"},
        "loggers": loggers,
    }
