"""Rename periodic tasks to the names of `config/beat_schedule.py`."""

from django.db import migrations

NAMES = {
    "Sweep of what is not indexed": "Indexing of changed chats",
    "Sweep of images never sent": "Sweep of unsent images",
    "Closing of silent chats": "Closing of idle chats",
    "Clearing of keys and rates": "Removal of expired keys and rates",
    "Sweep of what webhooks wait for": "Webhook deliveries",
    "Clearing of the webhooks' log": "Clearing of the webhook log",
    "Signs of life": "Heartbeat of version 0.1",
}


def rename(apps, names):
    tasks = apps.get_model("django_celery_beat", "PeriodicTask").objects
    for before, after in names.items():
        # Both exist if the beat's tables were migrated before this app: names are unique.
        if tasks.filter(name=after).exists():
            tasks.filter(name=before).delete()
        else:
            tasks.filter(name=before).update(name=after)


def forwards(apps, schema_editor):
    rename(apps, NAMES)


def backwards(apps, schema_editor):
    rename(apps, {after: before for before, after in NAMES.items()})


class Migration(migrations.Migration):
    dependencies = [("config", "0006_crashed_tasks")]
    operations = [migrations.RunPython(forwards, backwards)]
