"""Add webhook events to the choices in the state of migrations. The database does not change."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0013_plain_table_names'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
        migrations.AlterField(
            model_name='delivery',
            name='event',
            field=models.CharField(choices=[('message.posted', 'Message posted'), ('message.edited', 'Message edited'), ('message.deleted', 'Message deleted'), ('reply.finished', 'Reply finished'), ('session.closed', 'Chat closed'), ('entry.written', 'Memory added or changed'), ('entry.rolled_up', 'Memories merged'), ('memory.proposed', 'Review needed'), ('memory.forgotten', 'Something forgotten'), ('fact.changed', 'Fact added or changed'), ('import.done', 'Import finished'), ('webhook.test', 'Test')], max_length=20),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='events',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('message.posted', 'Message posted'), ('message.edited', 'Message edited'), ('message.deleted', 'Message deleted'), ('reply.finished', 'Reply finished'), ('session.closed', 'Chat closed'), ('entry.written', 'Memory added or changed'), ('entry.rolled_up', 'Memories merged'), ('memory.proposed', 'Review needed'), ('memory.forgotten', 'Something forgotten'), ('fact.changed', 'Fact added or changed'), ('import.done', 'Import finished')], max_length=20), size=None),
        ),
        ]),
    ]
