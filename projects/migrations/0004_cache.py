"""The table behind Django's cache, as `createcachetable` would make it, but for its being unlogged:
what it keeps is of no use after a crash. The version before knows nothing of it.
"""

from django.db import migrations

MADE = (
    """
    CREATE UNLOGGED TABLE projects_cache (
        cache_key varchar(255) NOT NULL PRIMARY KEY,
        value text NOT NULL,
        expires timestamp with time zone NOT NULL
    )
    """,
    "CREATE INDEX projects_cache_expires ON projects_cache (expires)",
)


def make(apps, schema_editor) -> None:
    for statement in MADE:
        schema_editor.execute(statement)


def unmake(apps, schema_editor) -> None:
    schema_editor.execute("DROP TABLE projects_cache")


class Migration(migrations.Migration):
    dependencies = [("projects", "0003_invitations")]
    operations = [migrations.RunPython(make, unmake)]
