"""Name the fields of all models in the state of migrations. The database does not change."""

from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('config', '0008_plain_help_texts'),
    ]

    operations = [
        StateOperations([
            migrations.AlterModelOptions(
                name='crashedtask',
                options={'verbose_name': 'crashed task', 'verbose_name_plural': 'crashed tasks'},
            ),
            migrations.AlterField(
                model_name='crashedtask',
                name='args',
                field=models.JSONField(default=list, verbose_name='arguments'),
            ),
            migrations.AlterField(
                model_name='crashedtask',
                name='crashes',
                field=models.PositiveIntegerField(default=0, verbose_name='crashes'),
            ),
            migrations.AlterField(
                model_name='crashedtask',
                name='key',
                field=models.CharField(editable=False, max_length=64, primary_key=True, serialize=False, verbose_name='key'),
            ),
            migrations.AlterField(
                model_name='crashedtask',
                name='kwargs',
                field=models.JSONField(default=dict, verbose_name='keyword arguments'),
            ),
            migrations.AlterField(
                model_name='crashedtask',
                name='last_crash_at',
                field=models.DateTimeField(verbose_name='last crash'),
            ),
            migrations.AlterField(
                model_name='crashedtask',
                name='set_aside_at',
                field=models.DateTimeField(help_text='The task does not run since then. A task without arguments is only paused.', null=True, verbose_name='paused since'),
            ),
            migrations.AlterField(
                model_name='crashedtask',
                name='task',
                field=models.CharField(max_length=100, verbose_name='task'),
            ),
        ]),
    ]
