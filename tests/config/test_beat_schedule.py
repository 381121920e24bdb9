"""The rows of the beat schedule that `migrate` writes."""

from importlib import import_module

import pytest
from django.apps import apps
from django_celery_beat.models import PeriodicTask

from config.beat_schedule import BEAT_SCHEDULE, add_missing_tasks
from config.celery import app

pytestmark = pytest.mark.django_db


def stored_schedule() -> dict[str, tuple[str, int, str]]:
    rows = PeriodicTask.objects.exclude(interval=None)
    values = rows.values_list("name", "task", "interval__every", "interval__period")
    return {name: (task, every, period) for name, task, every, period in values}


def test_a_new_database_has_the_declared_schedule():
    assert stored_schedule() == BEAT_SCHEDULE
    assert set(PeriodicTask.objects.values_list("expire_seconds", "enabled")) == {(120, True)}


def test_each_scheduled_task_exists():
    app.loader.import_default_modules()
    assert {task for task, *_ in BEAT_SCHEDULE.values()} <= set(app.tasks)


def test_a_missing_task_is_added_with_its_period():
    PeriodicTask.objects.filter(task="memory.tasks.run_deliveries").delete()
    add_missing_tasks(apps)
    assert stored_schedule() == BEAT_SCHEDULE
    assert PeriodicTask.objects.get(task="memory.tasks.run_deliveries").expire_seconds == 120


def test_a_used_database_keeps_the_heartbeat_of_version_0_1(owner):
    migration = import_module("config.migrations.0010_no_heartbeat_in_new_databases")
    interval = PeriodicTask.objects.exclude(interval=None)[0].interval
    rows = PeriodicTask.objects.filter(task="config.tasks.heartbeat")
    rows.create(name="Heartbeat of version 0.1", task="config.tasks.heartbeat", interval=interval)
    migration.forwards(apps, None)
    assert rows.exists()
    owner.delete()
    migration.forwards(apps, None)
    assert not rows.exists()


def test_changes_of_operators_survive_a_migration():
    hourly = PeriodicTask.objects.get(task="projects.tasks.clear").interval
    rows = PeriodicTask.objects.filter(task="memory.tasks.run_cycle")
    rows.update(name="Summaries", interval=hourly, enabled=False)
    add_missing_tasks(apps)
    assert list(rows.values_list("name", "interval", "enabled")) == [
        ("Summaries", hourly.pk, False)
    ]
    assert PeriodicTask.objects.count() == len(BEAT_SCHEDULE)
