"""Reword help texts that the admin shows. The database does not change."""

from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0021_field_names'),
    ]

    operations = [
        StateOperations([
            migrations.AlterField(
                model_name='activity',
                name='reason',
                field=models.CharField(blank=True, help_text='The reason that a moderator chose, or the reason of a failure.', max_length=200, verbose_name='reason'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='losses',
                field=models.JSONField(blank=True, default=list, help_text='Details of the sources that are missing in the text.', verbose_name='missing details'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='particulars',
                field=models.PositiveIntegerField(default=0, help_text='The number of names, dates, numbers and identifiers in the sources.', verbose_name='details in the sources'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='dirty_from',
                field=models.PositiveIntegerField(default=1, help_text='The number of the first message that may differ from the index.', verbose_name='changed from message'),
            ),
            migrations.AlterField(
                model_name='vector',
                name='indexed',
                field=models.BooleanField(default=False, help_text='Search compares vectors outside of the index one by one.', verbose_name='in the index'),
            ),
        ]),
    ]
