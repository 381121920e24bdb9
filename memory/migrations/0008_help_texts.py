"""Reword the help texts of memory. No SQL runs."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0007_imports_recorded'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        StateOperations([
        migrations.AlterField(
            model_name='activity',
            name='count',
            field=models.PositiveIntegerField(default=0, help_text='The number of all affected objects.'),
        ),
        migrations.AlterField(
            model_name='activity',
            name='reason',
            field=models.CharField(blank=True, help_text='A ModerationReason, or the reason of a failure.', max_length=200),
        ),
        migrations.AlterField(
            model_name='activity',
            name='receipt',
            field=models.JSONField(blank=True, default=dict, help_text='For a forget request: the removed objects, as numbers and ids.'),
        ),
        migrations.AlterField(
            model_name='activity',
            name='related',
            field=models.JSONField(blank=True, default=list, help_text='Ids of other affected objects.'),
        ),
        migrations.AlterField(
            model_name='activity',
            name='whom',
            field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, help_text='The member, for acts on a membership.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='block',
            name='position',
            field=models.PositiveIntegerField(default=0, help_text='The position on its shelf, from 0.'),
        ),
        migrations.AlterField(
            model_name='block',
            name='tokens',
            field=models.PositiveIntegerField(help_text='Tokens of the block in prompts (cl100k_base).'),
        ),
        migrations.AlterField(
            model_name='block',
            name='user',
            field=models.ForeignKey(blank=True, help_text='The user of a personal block. Empty: a block of the project.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='block',
            name='written_by',
            field=models.ForeignKey(blank=True, help_text='The only author. Empty: several authors, or a deleted account.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='call',
            name='outcome',
            field=models.CharField(blank=True, help_text='“answered”, or the reason of the failure.', max_length=200),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='language',
            field=models.CharField(help_text='The text search configuration of the terms.', max_length=63),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='part',
            field=models.PositiveIntegerField(default=0, help_text='The number of this part of a long message.'),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='pieces',
            field=models.BinaryField(help_text='The word pieces; see memory.recall.wordpieces.'),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='source',
            field=models.UUIDField(help_text='The session of messages, or the entry of a summary.'),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='tokens',
            field=models.PositiveIntegerField(help_text='Tokens in prompts, with date and speaker (cl100k_base).'),
        ),
        migrations.AlterField(
            model_name='cursor',
            name='failures',
            field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='error',
            field=models.CharField(blank=True, help_text='The reason of the failure.', max_length=200),
        ),
        migrations.AlterField(
            model_name='entry',
            name='losses',
            field=models.JSONField(blank=True, default=list, help_text='Particulars of the children that are missing in the text.'),
        ),
        migrations.AlterField(
            model_name='entry',
            name='note',
            field=models.TextField(blank=True, help_text='A hand-written text of a digest, used as one of its sources.'),
        ),
        migrations.AlterField(
            model_name='entry',
            name='particulars',
            field=models.PositiveIntegerField(default=0, help_text='The number of names, dates, numbers and identifiers in the children.'),
        ),
        migrations.AlterField(
            model_name='entry',
            name='sources_hash',
            field=models.CharField(blank=True, help_text='A hash of the ids and revisions of the sources.', max_length=64),
        ),
        migrations.AlterField(
            model_name='entry',
            name='tokens',
            field=models.PositiveIntegerField(help_text='Tokens in the bank (cl100k_base).'),
        ),
        migrations.AlterField(
            model_name='entry',
            name='waits_because',
            field=models.CharField(blank=True, choices=[('asked', 'the project reviews new memories'), ('private', 'it quotes a private chat'), ('instructions', 'it reads like instructions to a model'), ('imported', 'another program remembered it'), ('sources', "somebody's own words rest on what was forgotten")], help_text='The reason for the review.', max_length=12),
        ),
        migrations.AlterField(
            model_name='entry',
            name='withheld',
            field=models.BooleanField(default=False, help_text='A source was hidden, deleted or forgotten: no text until the rewrite.'),
        ),
        migrations.AlterField(
            model_name='entry',
            name='written_by',
            field=models.CharField(help_text='The name of the model, or “extractive”.', max_length=200),
        ),
        migrations.AlterField(
            model_name='fact',
            name='by_hand',
            field=models.BooleanField(default=False, help_text='Entered by hand: the fact needs no source.'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='earlier_of',
            field=models.ForeignKey(blank=True, help_text='The fact of which this is an earlier version.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='earlier', to='memory.fact'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='retired_at',
            field=models.DateTimeField(blank=True, help_text='The time at which the project retired this version.', null=True),
        ),
        migrations.AlterField(
            model_name='fact',
            name='user',
            field=models.ForeignKey(blank=True, help_text='The only user that the fact is about and shown to. Empty: the project.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='fact',
            name='valid_until',
            field=models.DateTimeField(blank=True, help_text='An end that somebody entered. The next fact of the topic also ends the fact.', null=True),
        ),
        migrations.AlterField(
            model_name='fact',
            name='waits_because',
            field=models.CharField(blank=True, choices=[('asked', 'the project reviews new memories'), ('private', 'it quotes a private chat'), ('instructions', 'it reads like instructions to a model'), ('imported', 'another program remembered it'), ('sources', "somebody's own words rest on what was forgotten")], help_text='The reason for the review.', max_length=12),
        ),
        migrations.AlterField(
            model_name='fact',
            name='written_by',
            field=models.CharField(help_text='The name of the model or of the author.', max_length=200),
        ),
        migrations.AlterField(
            model_name='indexcursor',
            name='dirty_from',
            field=models.PositiveIntegerField(default=1, help_text='The first seq that may differ from the chunks.'),
        ),
        migrations.AlterField(
            model_name='indexcursor',
            name='done',
            field=models.PositiveBigIntegerField(default=0, help_text='The number of changes that are indexed.'),
        ),
        migrations.AlterField(
            model_name='indexcursor',
            name='failures',
            field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.'),
        ),
        migrations.AlterField(
            model_name='indexcursor',
            name='wanted',
            field=models.PositiveBigIntegerField(default=0, help_text='The number of changes.'),
        ),
        migrations.AlterField(
            model_name='ladder',
            name='failures',
            field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.'),
        ),
        migrations.AlterField(
            model_name='ladder',
            name='ripe_at',
            field=models.DateTimeField(blank=True, help_text='The next time at which entries are old enough to roll up.', null=True),
        ),
        migrations.AlterField(
            model_name='tombstone',
            name='subject',
            field=models.CharField(help_text='An id, or the SHA-256 of an id.', max_length=64),
        ),
        migrations.AlterField(
            model_name='vector',
            name='indexed',
            field=models.BooleanField(default=False, help_text='Whether the vector is in the index; see vector_index.'),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='failures',
            field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.'),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='off_because',
            field=models.CharField(blank=True, choices=[('owner', 'An owner switched it off.'), ('staff', 'An administrator of this server switched it off.'), ('failing', 'Nothing could be delivered for three days.'), ('gone', 'The receiver said that it is gone for good (410).')], help_text='Empty: the webhook is on.', max_length=10),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='previous_until',
            field=models.DateTimeField(blank=True, help_text='The time until which the previous secret also signs.', null=True),
        ),
        ]),
    ]
