"""Remove the heartbeat of version 0.1 from new databases, which no process of 0.1 has used."""

from django.conf import settings
from django.db import migrations


def forwards(apps, schema_editor):
    if not apps.get_model(settings.AUTH_USER_MODEL).objects.exists():
        tasks = apps.get_model("django_celery_beat", "PeriodicTask").objects
        tasks.filter(task="config.tasks.heartbeat").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("config", "0009_field_names"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [migrations.RunPython(forwards, migrations.RunPython.noop)]
