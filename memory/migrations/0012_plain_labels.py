"""Reword the labels of choices in the state of migrations. The database does not change."""

import django.contrib.postgres.fields
from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0011_entries_without_lines'),
    ]

    operations = [
        StateOperations([
        migrations.AlterField(
            model_name='activity',
            name='verb',
            field=models.CharField(choices=[('summarised', 'summarised a chat'), ('rolled_up', 'merged memories into'), ('rewritten', 'rewrote'), ('dissolved', 'removed because all sources were deleted'), ('faded', 'stopped sending memories (no room)'), ('returned', 'resumed sending memories'), ('failed', 'failed'), ('proposed', 'sent for review'), ('approved', 'approved'), ('rejected', 'rejected'), ('edited', 'edited'), ('pinned', 'pinned'), ('unpinned', 'unpinned'), ('hidden', 'hid'), ('shown', 'showed again'), ('redacted', 'removed text from'), ('asked_anew', 'requested a rewrite of'), ('forgotten', 'forgot'), ('block_kept', 'changed pinned text'), ('block_gone', 'deleted pinned text'), ('read', 'opened the private text of'), ('recorded', 'added'), ('closed', 'ended'), ('member_added', 'added a member'), ('member_gone', 'removed a member'), ('role_changed', 'changed a role'), ('invited', 'created an invitation'), ('imported', 'imported chats'), ('joined', 'joined by invitation')], max_length=12),
        ),
        migrations.AlterField(
            model_name='call',
            name='kind',
            field=models.CharField(choices=[('conversation', 'chat summary'), ('merge', 'merge of partial chat summaries'), ('digest', 'later summary'), ('again', 'later summary, second try with missing details')], max_length=12),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='event',
            field=models.CharField(choices=[('message.posted', 'Message posted'), ('reply.finished', 'Reply finished'), ('entry.written', 'Memory added or changed'), ('entry.rolled_up', 'Memories merged'), ('memory.proposed', 'Review needed'), ('memory.forgotten', 'Something forgotten'), ('import.done', 'Import finished'), ('webhook.test', 'Test')], max_length=20),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='state',
            field=models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('given_up', 'Failed')], default='waiting', max_length=10),
        ),
        migrations.AlterField(
            model_name='entry',
            name='state',
            field=models.CharField(choices=[('proposed', 'Needs review'), ('live', 'In use'), ('absorbed', 'Merged into a later summary'), ('faded', 'Not sent (no room)'), ('hidden', 'Hidden'), ('stale', 'Waiting to be rewritten')], default='live', max_length=10),
        ),
        migrations.AlterField(
            model_name='entry',
            name='waits_because',
            field=models.CharField(blank=True, choices=[('asked', 'New memory'), ('private', 'Quotes a private chat'), ('instructions', 'Contains instructions to a model'), ('imported', 'Added by another program'), ('sources', 'May contain forgotten text')], help_text='The reason for the review.', max_length=12),
        ),
        migrations.AlterField(
            model_name='fact',
            name='state',
            field=models.CharField(choices=[('proposed', 'Needs review'), ('live', 'Active'), ('hidden', 'Hidden')], default='live', max_length=8),
        ),
        migrations.AlterField(
            model_name='fact',
            name='waits_because',
            field=models.CharField(blank=True, choices=[('asked', 'New memory'), ('private', 'Quotes a private chat'), ('instructions', 'Contains instructions to a model'), ('imported', 'Added by another program'), ('sources', 'May contain forgotten text')], help_text='The reason for the review.', max_length=12),
        ),
        migrations.AlterField(
            model_name='tombstone',
            name='kind',
            field=models.CharField(choices=[('message', 'Message'), ('session', 'Chat'), ('source', 'Chat or message in another program'), ('fact', 'Fact from a chat'), ('record', 'Fact'), ('entry', 'Single memory'), ('unkept', 'Message excluded from memory'), ('block', 'Pinned text'), ('upload', 'Imported file'), ('user', 'Other data of a user'), ('project', 'Deleted project')], max_length=8),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='events',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('message.posted', 'Message posted'), ('reply.finished', 'Reply finished'), ('entry.written', 'Memory added or changed'), ('entry.rolled_up', 'Memories merged'), ('memory.proposed', 'Review needed'), ('memory.forgotten', 'Something forgotten'), ('import.done', 'Import finished')], max_length=20), size=None),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='off_because',
            field=models.CharField(blank=True, choices=[('owner', 'An owner turned it off.'), ('staff', 'An administrator turned it off.'), ('failing', 'No delivery succeeded for three days.'), ('gone', 'The receiver reported that it no longer exists (410).')], help_text='Empty: the webhook is on.', max_length=10),
        ),
        ]),
    ]
