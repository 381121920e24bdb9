"""Index the entries that have a text and no lines, until all have lines."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0010_facts_in_recall")]

    operations = [
        AddIndexConcurrently(
            "entry",
            models.Index(
                fields=["project"],
                name="entry_without_lines",
                condition=models.Q(("lines", []), models.Q(("summary", ""), _negated=True)),
            ),
        ),
    ]
