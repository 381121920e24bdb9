"""The Celery application. Tasks are in the tasks.py of each app, schedules in the database."""

import os
from typing import Any

import structlog
from celery import Celery
from celery.signals import setup_logging
from django.dispatch import receiver
from django_structlog.celery import signals
from django_structlog.celery.receivers import CeleryReceiver
from kombu.transport import TRANSPORT_ALIASES

from config.runtime import watchdog

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

TRANSPORT_ALIASES["pgmq"] = "config.broker.pgmq:PgmqTransport"
TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = "config.broker.redis:RedisTransport"

watchdog.dump_stacks_on_signal()

app = Celery("strata", task_cls="config.runtime.crashes:CrashAwareTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add("config.health.heartbeats:HeartbeatStep")

# Adds the task's id and name, and the id of the request that enqueued it, to the task's log lines.
_structlog_receiver = CeleryReceiver()
_structlog_receiver.connect_worker_signals()


@receiver(signals.bind_extra_task_metadata)
def _bind_task_name(task: Any, **_: Any) -> None:
    structlog.contextvars.bind_contextvars(task=task.name)


@setup_logging.connect
def _keep_django_logging(**_: Any) -> None:
    """Receive `setup_logging`, so that Celery does not configure logging itself."""
