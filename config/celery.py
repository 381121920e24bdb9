"""The Celery application. Tasks live in each app's tasks.py; schedules live in the database."""

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

from config.logs import tasks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

TRANSPORT_ALIASES["pgmq"] = "config.broker:Transport"
TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = "config.redis_broker:Transport"

app = Celery("strata")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
tasks.connect()
app.steps["consumer"].add("config.signs:SignsOfLife")
