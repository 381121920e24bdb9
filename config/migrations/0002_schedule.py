"""The beat's schedule. It lives in the database, where moderators see and change it."""

from django.db import migrations

# name, task, every, period
SCHEDULE = [
    ("Memory cycle", "memory.tasks.run_cycle", 1, "minutes"),
    ("Sweep of what is not indexed", "memory.tasks.run_indexing", 1, "minutes"),
    ("Sweep of interrupted replies", "chat.tasks.sweep_interrupted", 20, "seconds"),
    ("Sweep of images never sent", "chat.tasks.sweep_attachments", 1, "hours"),
    ("Sweep of unfinished imports", "chat.tasks.sweep_imports", 1, "minutes"),
    ("Closing of silent chats", "chat.tasks.close_the_silent", 1, "hours"),
    ("Removal of deleted chats", "chat.tasks.purge_deleted", 1, "minutes"),
    ("Clearing of keys and rates", "projects.tasks.clear", 1, "hours"),
    ("Sweep of what webhooks wait for", "memory.tasks.run_deliveries", 20, "seconds"),
    ("Clearing of the webhooks' log", "memory.tasks.clear_deliveries", 1, "hours"),
    ("Signs of life", "config.tasks.heartbeat", 20, "seconds"),
]


def add(apps, schema_editor):
    IntervalSchedule = apps.get_model("django_celery_beat", "IntervalSchedule")
    PeriodicTask = apps.get_model("django_celery_beat", "PeriodicTask")
    for name, task, every, period in SCHEDULE:
        interval, _ = IntervalSchedule.objects.get_or_create(every=every, period=period)
        PeriodicTask.objects.get_or_create(
            name=name,
            # A beat that stood still sends one overdue message, and it is void after a while.
            defaults={"task": task, "interval": interval, "expire_seconds": 120},
        )


def remove(apps, schema_editor):
    names = [name for name, *_ in SCHEDULE]
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name__in=names).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("config", "0001_initial"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [migrations.RunPython(add, remove)]
