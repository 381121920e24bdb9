"""The Celery application. Tasks live in each app's tasks.py; schedules live in the database."""

import os
from typing import Any

from celery import Celery, signals
from kombu.transport import TRANSPORT_ALIASES

from config.logs import tasks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

# Of workers, as nice(1) has it: beside a web process that wants the same core they get a tenth.
NICENESS = 10

TRANSPORT_ALIASES["pgmq"] = "config.broker:Transport"

app = Celery("strata")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
tasks.connect()
app.steps["consumer"].add("config.signs:SignsOfLife")


@signals.worker_init.connect
def give_way(**_: Any) -> None:
    # Somebody waits for each answer of a web process. What workers do has minutes.
    os.nice(NICENESS)
