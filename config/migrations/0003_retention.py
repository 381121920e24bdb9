"""Has the beat look for what projects keep no longer."""

from django.db import migrations

NAME = "Retention of chats"


def add(apps, schema_editor):
    IntervalSchedule = apps.get_model("django_celery_beat", "IntervalSchedule")
    PeriodicTask = apps.get_model("django_celery_beat", "PeriodicTask")
    interval, _ = IntervalSchedule.objects.get_or_create(every=1, period="hours")
    PeriodicTask.objects.get_or_create(
        name=NAME,
        defaults={"task": "memory.tasks.let_go", "interval": interval, "expire_seconds": 120},
    )


def remove(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [("config", "0002_schedule")]
    operations = [migrations.RunPython(add, remove)]
