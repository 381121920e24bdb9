"""The beat schedule: the tasks that run periodically, and how often.

The schedule that beat follows is in the database, where operators change it under **Admin →
Periodic tasks**. `migrate` adds a row for each task of `BEAT_SCHEDULE` that has none and leaves
existing rows as they are, so changed periods and disabled tasks stay. A deleted row comes back. A
changed period in this file applies to new databases only; others need a migration.
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
    # Only processes of version 0.1 need it.
    "Heartbeat of version 0.1": ("config.tasks.heartbeat", 20, "seconds"),
}
# A beat that stood still sends an overdue task once; after this time a worker drops it.
EXPIRE_S = 120


def add_missing_tasks(apps: Any, **_: Any) -> None:
    """Receive `post_migrate`: add the rows of tasks that have none."""
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
                name=name,
                defaults={"task": task, "interval": interval, "expire_seconds": EXPIRE_S},
            )
