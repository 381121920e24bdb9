"""What was spent of a rate is not worth a write to disk, nor anything after a crash."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("projects", "0001_initial")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE projects_bucket SET UNLOGGED", "ALTER TABLE projects_bucket SET LOGGED"
        )
    ]
