"""The index of words leaves out what is still being said: each second of it was indexed anew.

The version before searches without an index from the last step on until it is replaced.
"""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.contrib.postgres.search import SearchVector
from django.db import migrations, models
from django.db.models.functions import Left


def drop_half_made(apps, schema_editor):
    """What a migration that was cut off left behind: it cannot be used, and has the name."""
    schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS message_said")


def keep_no_samples(apps, schema_editor):
    schema_editor.execute("ALTER INDEX message_said ALTER COLUMN 1 SET STATISTICS 0")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chat", "0004_imported_stretches")]

    operations = [
        migrations.RunPython(drop_half_made, migrations.RunPython.noop),
        AddIndexConcurrently(
            "message",
            GinIndex(
                SearchVector(Left("text", 200000), config="simple"),
                condition=models.Q(status__in=("complete", "stopped", "interrupted", "failed")),
                name="message_said",
            ),
        ),
        migrations.RunPython(keep_no_samples, migrations.RunPython.noop),
        RemoveIndexConcurrently("message", "message_words"),
    ]
