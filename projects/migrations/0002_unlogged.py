"""What was spent of a rate is not worth a write to disk, nor anything after a crash.

Room on each page for the new versions of its rows, which come with every request.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("projects", "0001_initial")]
    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE projects_bucket SET UNLOGGED;
            ALTER TABLE projects_bucket SET (fillfactor = 40);
            """,
            """
            ALTER TABLE projects_bucket RESET (fillfactor);
            ALTER TABLE projects_bucket SET LOGGED;
            """,
        )
    ]
