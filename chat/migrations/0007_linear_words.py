"""The index of words takes linear time for hostile text, which PostgreSQL's parser does not.

The version before searches without an index from the last step on until it is replaced.
"""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.contrib.postgres.search import SearchVector
from django.db import migrations, models
from django.db.models.functions import Left


def drop_half_made(apps, schema_editor):
    """What a migration that was cut off left behind: it cannot be used, and has the name."""
    schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS message_searched")


def keep_no_samples(apps, schema_editor):
    schema_editor.execute("ALTER INDEX message_searched ALTER COLUMN 1 SET STATISTICS 0")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chat", "0006_no_samples_of_imports")]

    operations = [
        migrations.RunPython(drop_half_made, migrations.RunPython.noop),
        AddIndexConcurrently(
            "message",
            GinIndex(
                SearchVector(
                    models.Func(
                        models.Func(
                            Left("text", 200000),
                            models.Value("<"),
                            models.Value(" "),
                            function="translate",
                        ),
                        models.Value(r"[^\s,\"(){}\[\]]{100}"),
                        models.Value(r"\& "),
                        models.Value("g"),
                        function="regexp_replace",
                        output_field=models.TextField(),
                    ),
                    config="simple",
                ),
                condition=models.Q(status__in=("complete", "stopped", "interrupted", "failed")),
                name="message_searched",
            ),
        ),
        migrations.RunPython(keep_no_samples, migrations.RunPython.noop),
        RemoveIndexConcurrently("message", "message_said"),
    ]
