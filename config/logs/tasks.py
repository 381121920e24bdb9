"""A task's lines carry its id and name, and the request that it was started by."""

from typing import Any

import structlog
from celery.signals import setup_logging
from django_structlog.celery import signals
from django_structlog.celery.receivers import CeleryReceiver

_receiver = CeleryReceiver()


def connect() -> None:
    """For whoever starts tasks, and for who runs them."""
    _receiver.connect_worker_signals()
    setup_logging.connect(_leave_logging_alone)
    signals.bind_extra_task_metadata.connect(_name_task)


def _leave_logging_alone(**_: Any) -> None:
    """Celery sets up no logging where somebody listens to this."""


def _name_task(task: Any, **_: Any) -> None:
    structlog.contextvars.bind_contextvars(task=task.name)
