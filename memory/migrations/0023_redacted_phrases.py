"""Add the kind of tombstones for redacted phrases. The database does not change."""

from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0022_admin_help_texts'),
    ]

    operations = [
        StateOperations([
            migrations.AlterField(
                model_name='tombstone',
                name='kind',
                field=models.CharField(choices=[('message', 'Message'), ('session', 'Chat'), ('source', 'Chat or message in another program'), ('fact', 'Fact from a chat'), ('record', 'Fact'), ('entry', 'Single memory'), ('unkept', 'Message excluded from memory'), ('block', 'Pinned text'), ('upload', 'Imported file'), ('file', 'File'), ('redacted', 'Text removed from a memory'), ('user', 'Other data of a user'), ('project', 'Deleted project')], max_length=8, verbose_name='kind'),
            ),
        ]),
    ]
