"""The table behind Django's cache, as `createcachetable` would make it, but for its being unlogged:
what it keeps is of no use after a crash.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("projects", "0003_invitations")]
    operations = [
        migrations.RunSQL(
            """
            CREATE UNLOGGED TABLE projects_cache (
                cache_key varchar(255) NOT NULL PRIMARY KEY,
                value text NOT NULL,
                expires timestamp with time zone NOT NULL
            );
            CREATE INDEX projects_cache_expires ON projects_cache (expires);
            """,
            "DROP TABLE projects_cache",
        )
    ]
