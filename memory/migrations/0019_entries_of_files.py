"""Let an entry summarise a version of a file."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('memory', '0018_help_text_of_positions')]

    operations = [
        migrations.AddField(
            model_name='entry',
            name='file',
            field=models.ForeignKey(blank=True, db_index=False, help_text='The version of a file that it summarises.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.filerevision'),
        ),
        migrations.RemoveConstraint(
            model_name='entry',
            name='only_conversation_entries_cover',
        ),
        AddConstraintNotValid(
            model_name='entry',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('file__isnull', True), ('first_seq__isnull', False), ('granularity', 'conversation'), ('last_seq__gte', models.F('first_seq')), ('session__isnull', False)), models.Q(('file__isnull', False), ('first_seq__isnull', True), ('granularity', 'conversation'), ('last_seq__isnull', True)), models.Q(models.Q(('granularity', 'conversation'), _negated=True), ('file__isnull', True), ('first_seq__isnull', True), ('last_seq__isnull', True), ('session__isnull', True)), _connector='OR'), name='only_conversation_entries_cover'),
        ),
    ]
