"""The beat schedule: the periodic tasks and their periods.

The schedule is stored in the database, where administrators can change it under **Admin → Periodic
tasks**. `migrate` adds the missing tasks of `BEAT_SCHEDULE` and does not change existing rows.
Therefore changed periods and disabled tasks are kept, but a deleted row is added again. Changing a
period in this file only affects new databases; existing databases need a migration.
"""

from typing import Any

BEAT_SCHEDULE: dict[str, tuple[str, int, str]] = {
    # name: task, every, period
    "Memory cycle": ("memory.tasks.run_cycle", 1, "minutes"),
    "Indexing of changed chats": ("memory.tasks.run_indexing", 1, "minutes"),
    "Reading of added files": ("memory.tasks.run_reading", 1, "minutes"),
    "Sweep of interrupted replies": ("chat.tasks.sweep_interrupted", 20, "seconds"),
    "Sweep of unsent images": ("chat.tasks.sweep_attachments", 1, "hours"),
    "Sweep of unfinished imports": ("chat.tasks.sweep_imports", 1, "minutes"),
    "Closing of idle chats": ("chat.tasks.close_the_silent", 1, "hours"),
    "Removal of deleted chats": ("chat.tasks.purge_deleted", 1, "minutes"),
    "Removal of files": ("chat.tasks.sweep_removals", 1, "minutes"),
    "Lists of models": ("chat.tasks.refresh_models", 10, "minutes"),
    "Retention of chats": ("memory.tasks.let_go", 1, "hours"),
    "Removal of expired keys and rates": ("projects.tasks.clear", 1, "hours"),
    "Webhook deliveries": ("memory.tasks.run_deliveries", 20, "seconds"),
    "Clearing of the webhook log": ("memory.tasks.clear_deliveries", 1, "hours"),
}
# Seconds after which workers drop a task that they have not started.
EXPIRE_S = 120


def add_missing_tasks(apps: Any, **_: Any) -> None:
    """Receive `post_migrate`: add a row for each task that has none."""
    try:
        PeriodicTask = apps.get_model("django_celery_beat", "PeriodicTask")
    except LookupError:
        return
    IntervalSchedule = apps.get_model("django_celery_beat", "IntervalSchedule")
    stored = set(PeriodicTask.objects.values_list("task", flat=True))
    for name, (task, every, period) in BEAT_SCHEDULE.items():
        if task not in stored:
            interval, _ = IntervalSchedule.objects.get_or_create(every=every, period=period)
            PeriodicTask.objects.get_or_create(
                name=name, defaults={"task": task, "interval": interval, "expire_seconds": EXPIRE_S}
            )
