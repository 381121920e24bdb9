"""Reword help texts that the admin shows. The database does not change."""

import django.db.models.deletion
from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0020_field_names'),
    ]

    operations = [
        StateOperations([
            migrations.AlterField(
                model_name='message',
                name='copied_from',
                field=models.ForeignKey(blank=True, help_text='In a fork: the original message. Memory covers only the original, and forgetting it also forgets the copy.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='copies', to='chat.message', verbose_name='copied from'),
            ),
            migrations.AlterField(
                model_name='message',
                name='lookups',
                field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='The lookups of a reply: tool, arguments, result_count, error.', verbose_name='lookups'),
            ),
            migrations.AlterField(
                model_name='modelprovider',
                name='catalogue',
                field=models.JSONField(default=list, editable=False, help_text='The models of the provider, with the known properties of each.', verbose_name='models'),
            ),
        ]),
    ]
