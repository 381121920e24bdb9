"""Validate the constraint of migration 0019, and index the entries of files."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    # So that neither the validation nor the index locks out a writer.
    atomic = False

    dependencies = [('memory', '0019_entries_of_files')]

    operations = [
        ValidateConstraint(model_name='entry', name='only_conversation_entries_cover'),
        AddIndexConcurrently(
            model_name='entry',
            index=models.Index(condition=models.Q(('file__isnull', False)), fields=['project', 'file'], name='entry_of_file'),
        ),
    ]
