"""Has the beat look for files that could not be removed yet."""

from django.db import migrations

NAME = "Removal of files"


def add(apps, schema_editor):
    IntervalSchedule = apps.get_model("django_celery_beat", "IntervalSchedule")
    PeriodicTask = apps.get_model("django_celery_beat", "PeriodicTask")
    interval, _ = IntervalSchedule.objects.get_or_create(every=1, period="minutes")
    PeriodicTask.objects.get_or_create(
        name=NAME,
        defaults={
            "task": "chat.tasks.sweep_removals",
            "interval": interval,
            "expire_seconds": 120,
        },
    )


def remove(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [("config", "0004_leadership")]
    operations = [migrations.RunPython(add, remove)]
