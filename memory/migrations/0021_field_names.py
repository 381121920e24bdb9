"""Name the fields of all models in the state of migrations. The database does not change."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
import memory.models.blocks
import memory.models.files
import memory.models.webhooks
import pgvector.django.halfvec
from django.conf import settings
from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0020_field_names'),
        ('memory', '0020_index_of_file_entries'),
        ('projects', '0014_has_files'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        StateOperations([
            migrations.AlterField(
                model_name='activity',
                name='at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='time'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='by',
                field=models.ForeignKey(blank=True, db_constraint=False, help_text='Empty: Strata itself.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='by'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='calls',
                field=models.PositiveIntegerField(default=0, verbose_name='model calls'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='cost',
                field=models.DecimalField(blank=True, decimal_places=6, help_text='US dollars.', max_digits=12, null=True, verbose_name='cost'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='count',
                field=models.PositiveIntegerField(default=0, help_text='The number of all affected objects.', verbose_name='affected objects'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='duration_ms',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='duration (ms)'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='entry_id',
                field=models.UUIDField(blank=True, null=True, verbose_name='memory ID'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='fact_id',
                field=models.UUIDField(blank=True, null=True, verbose_name='fact ID'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='granularity',
                field=models.CharField(blank=True, max_length=12, verbose_name='layer'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='input_tokens',
                field=models.PositiveIntegerField(default=0, verbose_name='input tokens'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='message_id',
                field=models.UUIDField(blank=True, null=True, verbose_name='message ID'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='output_tokens',
                field=models.PositiveIntegerField(default=0, verbose_name='output tokens'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='period_key',
                field=models.CharField(blank=True, max_length=10, verbose_name='period'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='activities', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='reason',
                field=models.CharField(blank=True, help_text='A ModerationReason, or the reason of a failure.', max_length=200, verbose_name='reason'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='receipt',
                field=models.JSONField(blank=True, default=dict, help_text='For a forget request: the removed objects, as numbers and ids.', verbose_name='receipt'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='related',
                field=models.JSONField(blank=True, default=list, help_text='Ids of other affected objects.', verbose_name='other objects'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='role_after',
                field=models.CharField(blank=True, db_default='', default='', max_length=10, verbose_name='new role'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='role_before',
                field=models.CharField(blank=True, db_default='', default='', max_length=10, verbose_name='former role'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='session_id',
                field=models.UUIDField(blank=True, null=True, verbose_name='chat ID'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='verb',
                field=models.CharField(choices=[('summarised', 'summarised'), ('rolled_up', 'merged memories into'), ('rewritten', 'rewrote'), ('dissolved', 'removed because all sources were deleted'), ('faded', 'stopped sending memories (no room)'), ('returned', 'resumed sending memories'), ('failed', 'failed'), ('proposed', 'sent for review'), ('approved', 'approved'), ('checked', 'confirmed'), ('rejected', 'rejected'), ('edited', 'edited'), ('pinned', 'pinned'), ('unpinned', 'unpinned'), ('hidden', 'hid'), ('shown', 'showed again'), ('deleted', 'deleted'), ('chat_closed', 'closed'), ('archived', 'archived'), ('unarchived', 'unarchived'), ('redacted', 'removed text from'), ('asked_anew', 'requested a rewrite of'), ('forgotten', 'forgot'), ('block_kept', 'changed pinned text'), ('block_gone', 'deleted pinned text'), ('read', 'opened the private text of'), ('recorded', 'added'), ('closed', 'ended'), ('member_added', 'added a member'), ('member_gone', 'removed a member'), ('role_changed', 'changed a role'), ('invited', 'created an invitation'), ('imported', 'imported chats'), ('joined', 'joined by invitation'), ('file_added', 'added a file')], max_length=12, verbose_name='action'),
            ),
            migrations.AlterField(
                model_name='activity',
                name='whom',
                field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, help_text='The member, for acts on a membership.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='member'),
            ),
            migrations.AlterField(
                model_name='block',
                name='content',
                field=models.TextField(blank=True, max_length=20000, verbose_name='text'),
            ),
            migrations.AlterField(
                model_name='block',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='block',
                name='name',
                field=models.CharField(max_length=60, validators=[memory.models.blocks.validate_block_name], verbose_name='name'),
            ),
            migrations.AlterField(
                model_name='block',
                name='position',
                field=models.PositiveIntegerField(default=0, help_text='The position among the blocks of the project or of the user, from 0.', verbose_name='position'),
            ),
            migrations.AlterField(
                model_name='block',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='block',
                name='tokens',
                field=models.PositiveIntegerField(help_text='Tokens of the block in prompts (cl100k_base).', verbose_name='tokens'),
            ),
            migrations.AlterField(
                model_name='block',
                name='updated_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='changed at'),
            ),
            migrations.AlterField(
                model_name='block',
                name='user',
                field=models.ForeignKey(blank=True, help_text='The user of a personal block. Empty: a block of the project.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='block',
                name='version',
                field=models.PositiveIntegerField(default=1, verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='block',
                name='written_by',
                field=models.ForeignKey(blank=True, help_text='The only author. Empty: several authors, or a deleted account.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='author',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='author'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='first_seq',
                field=models.PositiveIntegerField(verbose_name='first message'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='language',
                field=models.CharField(help_text='The text search configuration of the terms.', max_length=63, verbose_name='language'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='last_seq',
                field=models.PositiveIntegerField(verbose_name='last message'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='occurred_at',
                field=models.DateTimeField(verbose_name='time'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='part',
                field=models.PositiveIntegerField(default=0, help_text='The number of this part of a long message.', verbose_name='part'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='pieces',
                field=models.BinaryField(help_text='The word pieces; see memory.recall.wordpieces.', verbose_name='word pieces'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='role',
                field=models.CharField(choices=[('user', 'User'), ('assistant', 'Assistant'), ('system', 'System'), ('tool', 'Tool')], max_length=10, verbose_name='role'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='session',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='source',
                field=models.UUIDField(help_text='The session of messages, the entry of a summary, the fact, or the version of a file.', verbose_name='source'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='source_type',
                field=models.CharField(choices=[('turn', 'what was said'), ('note', 'a note'), ('entry', 'a summary'), ('fact', 'a fact'), ('file', 'a file')], max_length=10, verbose_name='kind of source'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='speaker',
                field=models.CharField(max_length=300, verbose_name='speaker'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='terms',
                field=models.GeneratedField(db_persist=True, expression=models.Func('language', 'project_id', 'text', function='memory_terms'), output_field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None), verbose_name='hashes of words'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='text',
                field=models.TextField(verbose_name='text'),
            ),
            migrations.AlterField(
                model_name='chunk',
                name='tokens',
                field=models.PositiveIntegerField(help_text='Tokens in prompts, with date and speaker (cl100k_base).', verbose_name='tokens'),
            ),
            migrations.AlterField(
                model_name='corpus',
                name='changes',
                field=models.PositiveIntegerField(default=0, verbose_name='changes since the count'),
            ),
            migrations.AlterField(
                model_name='corpus',
                name='chunks',
                field=models.PositiveIntegerField(default=0, verbose_name='search index entries'),
            ),
            migrations.AlterField(
                model_name='corpus',
                name='counted_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='counted at'),
            ),
            migrations.AlterField(
                model_name='corpus',
                name='counts',
                field=django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), default=list, size=None, verbose_name='occurrences'),
            ),
            migrations.AlterField(
                model_name='corpus',
                name='floor',
                field=models.PositiveIntegerField(default=1, verbose_name='fewest occurrences'),
            ),
            migrations.AlterField(
                model_name='corpus',
                name='project',
                field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='corpus', serialize=False, to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='corpus',
                name='terms',
                field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None, verbose_name='hashes of words'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='failures',
                field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.', verbose_name='failures'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='last_error',
                field=models.CharField(blank=True, max_length=500, verbose_name='last error'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='lease_holder',
                field=models.UUIDField(blank=True, null=True, verbose_name='leased by'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='lease_until',
                field=models.DateTimeField(blank=True, null=True, verbose_name='leased until'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='next_try_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='next attempt'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='session',
                field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='cursor', serialize=False, to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='summarised_through',
                field=models.PositiveIntegerField(default=0, verbose_name='summarised up to message'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='unsummarised_messages',
                field=models.PositiveIntegerField(default=0, verbose_name='messages without summary'),
            ),
            migrations.AlterField(
                model_name='cursor',
                name='unsummarised_tokens',
                field=models.PositiveIntegerField(default=0, verbose_name='tokens without summary'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='attempts',
                field=models.PositiveSmallIntegerField(default=0, verbose_name='attempts'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='data',
                field=models.JSONField(default=dict, verbose_name='data'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='error',
                field=models.CharField(blank=True, help_text='The reason of the failure.', max_length=200, verbose_name='error'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='event',
                field=models.CharField(choices=[('message.posted', 'Message posted'), ('message.edited', 'Message edited'), ('message.deleted', 'Message deleted'), ('reply.finished', 'Reply finished'), ('session.closed', 'Chat closed'), ('entry.written', 'Memory added or changed'), ('entry.rolled_up', 'Memories merged'), ('memory.proposed', 'Review needed'), ('memory.forgotten', 'Something forgotten'), ('fact.changed', 'Fact added or changed'), ('import.done', 'Import finished'), ('webhook.test', 'Test')], max_length=20, verbose_name='event'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='latency_ms',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='response time (ms)'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='next_try_at',
                field=models.DateTimeField(blank=True, db_default=django.db.models.functions.datetime.Now(), null=True, verbose_name='next attempt'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='state',
                field=models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('given_up', 'Failed')], default='waiting', max_length=10, verbose_name='state'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='status_code',
                field=models.PositiveSmallIntegerField(blank=True, null=True, verbose_name='HTTP status'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='tried_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='last attempt'),
            ),
            migrations.AlterField(
                model_name='delivery',
                name='webhook',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='memory.webhook', verbose_name='webhook'),
            ),
            migrations.AlterField(
                model_name='entrieschanged',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='file',
                field=models.ForeignKey(blank=True, db_index=False, help_text='The version of a file that it summarises.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.filerevision', verbose_name='file'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='first_seq',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='first message'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='first_source_at',
                field=models.DateTimeField(verbose_name='first source'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='granularity',
                field=models.CharField(choices=[('conversation', 'chat'), ('day', 'day'), ('week', 'week'), ('month', 'month')], max_length=12, verbose_name='layer'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='last_seq',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='last message'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='last_source_at',
                field=models.DateTimeField(verbose_name='last source'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='lines',
                field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='The lines of the text, the most important first.', verbose_name='lines'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='losses',
                field=models.JSONField(blank=True, default=list, help_text='Particulars of the children that are missing in the text.', verbose_name='missing details'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='message_count',
                field=models.PositiveIntegerField(verbose_name='messages'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='note',
                field=models.TextField(blank=True, help_text='A hand-written text of a digest, used as one of its sources.', verbose_name='note'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='parent',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='memory.entry', verbose_name='merged into'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='particulars',
                field=models.PositiveIntegerField(default=0, help_text='The number of names, dates, numbers and identifiers in the children.', verbose_name='details in the sources'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='period_key',
                field=models.CharField(max_length=10, verbose_name='period'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='pinned',
                field=models.BooleanField(default=False, verbose_name='pinned'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='revision',
                field=models.PositiveIntegerField(default=1, verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='session',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='sources_hash',
                field=models.CharField(blank=True, help_text='A hash of the ids and revisions of the sources.', max_length=64, verbose_name='hash of the sources'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='state',
                field=models.CharField(choices=[('proposed', 'Needs review'), ('live', 'In use'), ('absorbed', 'Merged into a later summary'), ('faded', 'Not sent (no room)'), ('hidden', 'Hidden'), ('stale', 'Waiting to be rewritten')], default='live', max_length=10, verbose_name='state'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='summary',
                field=models.TextField(verbose_name='summary'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='tokens',
                field=models.PositiveIntegerField(help_text='Tokens in the bank (cl100k_base).', verbose_name='tokens'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='waits_because',
                field=models.CharField(blank=True, choices=[('asked', 'New memory'), ('private', 'Quotes a private chat'), ('instructions', 'Contains instructions to a model'), ('imported', 'Added by another program'), ('sources', 'May contain forgotten text')], max_length=12, verbose_name='reason for review'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='withheld',
                field=models.BooleanField(default=False, help_text='A source was hidden, deleted or forgotten: no text until the rewrite.', verbose_name='text hidden'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='written_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='written at'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='written_by',
                field=models.CharField(help_text='The name of the model, or “extractive”.', max_length=200, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='entry',
                name='zone',
                field=models.CharField(max_length=64, verbose_name='time zone'),
            ),
            migrations.AlterField(
                model_name='entryrevision',
                name='entry',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memory.entry', verbose_name='memory'),
            ),
            migrations.AlterField(
                model_name='entryrevision',
                name='lines',
                field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='The lines of the text, the most important first.', verbose_name='lines'),
            ),
            migrations.AlterField(
                model_name='entryrevision',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='entryrevision',
                name='revision',
                field=models.PositiveIntegerField(verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='entryrevision',
                name='summary',
                field=models.TextField(verbose_name='summary'),
            ),
            migrations.AlterField(
                model_name='entryrevision',
                name='written_at',
                field=models.DateTimeField(verbose_name='written at'),
            ),
            migrations.AlterField(
                model_name='entryrevision',
                name='written_by',
                field=models.CharField(max_length=200, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='entry',
                field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='states', to='memory.entry', verbose_name='memory'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='parent_id',
                field=models.UUIDField(null=True, verbose_name='merged into'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='pinned',
                field=models.BooleanField(verbose_name='pinned'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='project',
                field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='revision',
                field=models.PositiveIntegerField(verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='since',
                field=models.DateTimeField(verbose_name='since'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='state',
                field=models.CharField(choices=[('proposed', 'Needs review'), ('live', 'In use'), ('absorbed', 'Merged into a later summary'), ('faded', 'Not sent (no room)'), ('hidden', 'Hidden'), ('stale', 'Waiting to be rewritten')], max_length=10, verbose_name='state'),
            ),
            migrations.AlterField(
                model_name='entrystate',
                name='withheld',
                field=models.BooleanField(verbose_name='text hidden'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='by_hand',
                field=models.BooleanField(default=False, help_text='Entered by hand: the fact needs no source.', verbose_name='entered by hand'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='confidence',
                field=models.FloatField(default=1.0, help_text='From 0 to 1.', verbose_name='confidence'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='earlier_of',
                field=models.ForeignKey(blank=True, help_text='The fact of which this is an earlier version.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='earlier', to='memory.fact', verbose_name='earlier version of'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='object',
                field=models.CharField(max_length=500, verbose_name='object'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='predicate',
                field=models.CharField(max_length=100, verbose_name='predicate'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='predicate_key',
                field=models.CharField(editable=False, max_length=100, verbose_name='normalised predicate'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='facts', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='recorded_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='recorded at'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='retired_at',
                field=models.DateTimeField(blank=True, help_text='The time at which the project retired this version.', null=True, verbose_name='replaced at'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='state',
                field=models.CharField(choices=[('proposed', 'Needs review'), ('live', 'Active'), ('hidden', 'Hidden')], default='live', max_length=8, verbose_name='state'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='subject',
                field=models.CharField(max_length=200, verbose_name='subject'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='subject_key',
                field=models.CharField(editable=False, max_length=200, verbose_name='normalised subject'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='topic',
                field=models.CharField(editable=False, max_length=64, verbose_name='topic'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='user',
                field=models.ForeignKey(blank=True, help_text='The only user that the fact is about and shown to. Empty: the project.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='valid_from',
                field=models.DateTimeField(verbose_name='valid from'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='valid_until',
                field=models.DateTimeField(blank=True, help_text='An end that somebody entered. The next fact of the topic also ends the fact.', null=True, verbose_name='valid until'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='version',
                field=models.PositiveIntegerField(default=1, verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='waits_because',
                field=models.CharField(blank=True, choices=[('asked', 'New memory'), ('private', 'Quotes a private chat'), ('instructions', 'Contains instructions to a model'), ('imported', 'Added by another program'), ('sources', 'May contain forgotten text')], max_length=12, verbose_name='reason for review'),
            ),
            migrations.AlterField(
                model_name='fact',
                name='written_by',
                field=models.CharField(help_text='The name of the model or of the author.', max_length=200, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='confidence',
                field=models.FloatField(verbose_name='confidence'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='entry',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='fact_sources', to='memory.entry', verbose_name='memory'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='fact',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='memory.fact', verbose_name='fact'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='found_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='found at'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='message',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.message', verbose_name='message'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='session',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='factsource',
                name='valid_from',
                field=models.DateTimeField(verbose_name='valid from'),
            ),
            migrations.AlterField(
                model_name='file',
                name='added_by',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='added by'),
            ),
            migrations.AlterField(
                model_name='file',
                name='changed_at',
                field=models.DateTimeField(default=django.utils.timezone.now, help_text='When its version was added.', verbose_name='changed at'),
            ),
            migrations.AlterField(
                model_name='file',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='file',
                name='name',
                field=models.CharField(max_length=200, verbose_name='name'),
            ),
            migrations.AlterField(
                model_name='file',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='files', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='file',
                name='session',
                field=models.ForeignKey(blank=True, help_text='The only chat that has the file. Empty: the whole project.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='files', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='file',
                name='uses',
                field=models.PositiveIntegerField(db_default=0, default=0, help_text='The number of prompts that contained a passage.', verbose_name='uses'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='headings',
                field=models.CharField(blank=True, help_text='The headings above it, as a path.', max_length=1000, verbose_name='headings'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='label',
                field=models.CharField(blank=True, help_text='Such as “p. 3”.', max_length=200, verbose_name='place'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='number',
                field=models.PositiveIntegerField(help_text='The place in the document, from 1.', verbose_name='number'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='page',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='page'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='revision',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passages', to='memory.filerevision', verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='section',
                field=models.PositiveIntegerField(help_text='The number of its page or section, from 1.', verbose_name='page or section'),
            ),
            migrations.AlterField(
                model_name='filepassage',
                name='text',
                field=models.TextField(verbose_name='text'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='added_by',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='added by'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='document',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memory.file', verbose_name='file'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='failures',
                field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.', verbose_name='failures'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='file',
                field=models.FileField(max_length=200, upload_to=memory.models.files.stored_at, verbose_name='file'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='indexed_passages',
                field=models.PositiveIntegerField(default=0, verbose_name='indexed passages'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='last_error',
                field=models.CharField(blank=True, max_length=500, verbose_name='last error'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='lease_holder',
                field=models.UUIDField(blank=True, null=True, verbose_name='leased by'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='lease_until',
                field=models.DateTimeField(blank=True, null=True, verbose_name='leased until'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='media_type',
                field=models.CharField(blank=True, max_length=100, verbose_name='media type'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='next_try_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='next attempt'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='number',
                field=models.PositiveIntegerField(verbose_name='number'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='page_count',
                field=models.PositiveIntegerField(default=0, verbose_name='pages'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='passage_count',
                field=models.PositiveIntegerField(default=0, verbose_name='passages'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='reason',
                field=models.CharField(blank=True, max_length=500, verbose_name='reason'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='sha256',
                field=models.CharField(max_length=64, verbose_name='SHA-256'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='size',
                field=models.PositiveBigIntegerField(help_text='Bytes.', verbose_name='size'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='state',
                field=models.CharField(choices=[('waiting', 'Waiting'), ('reading', 'Reading'), ('indexing', 'Indexing'), ('ready', 'Ready'), ('failed', 'Failed')], default='waiting', max_length=10, verbose_name='state'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='title',
                field=models.CharField(blank=True, max_length=300, verbose_name='title'),
            ),
            migrations.AlterField(
                model_name='filerevision',
                name='warnings',
                field=models.JSONField(blank=True, default=list, verbose_name='warnings'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='dirty_from',
                field=models.PositiveIntegerField(default=1, help_text='The first seq that may differ from the chunks.', verbose_name='changed from message'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='done',
                field=models.PositiveBigIntegerField(default=0, help_text='The number of changes that are indexed.', verbose_name='indexed changes'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='failures',
                field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.', verbose_name='failures'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='indexed_through',
                field=models.PositiveIntegerField(default=0, verbose_name='indexed up to message'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='last_error',
                field=models.CharField(blank=True, max_length=500, verbose_name='last error'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='lease_holder',
                field=models.UUIDField(blank=True, null=True, verbose_name='leased by'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='lease_until',
                field=models.DateTimeField(blank=True, null=True, verbose_name='leased until'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='next_try_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='next attempt'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='session',
                field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='index_cursor', serialize=False, to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='indexcursor',
                name='wanted',
                field=models.PositiveBigIntegerField(default=0, help_text='The number of changes.', verbose_name='changes'),
            ),
            migrations.AlterField(
                model_name='ladder',
                name='failures',
                field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.', verbose_name='failures'),
            ),
            migrations.AlterField(
                model_name='ladder',
                name='last_error',
                field=models.CharField(blank=True, max_length=500, verbose_name='last error'),
            ),
            migrations.AlterField(
                model_name='ladder',
                name='lease_holder',
                field=models.UUIDField(blank=True, null=True, verbose_name='leased by'),
            ),
            migrations.AlterField(
                model_name='ladder',
                name='lease_until',
                field=models.DateTimeField(blank=True, null=True, verbose_name='leased until'),
            ),
            migrations.AlterField(
                model_name='ladder',
                name='next_try_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='next attempt'),
            ),
            migrations.AlterField(
                model_name='ladder',
                name='project',
                field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='ladder', serialize=False, to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='ladder',
                name='ripe_at',
                field=models.DateTimeField(blank=True, help_text='The next time at which entries are old enough to roll up.', null=True, verbose_name='next merge'),
            ),
            migrations.AlterField(
                model_name='nudge',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='fingerprint',
                field=models.CharField(blank=True, max_length=64, verbose_name='fingerprint'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='included',
                field=models.JSONField(default=list, verbose_name='sent memories'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='left_out',
                field=models.JSONField(default=list, verbose_name='memories not sent'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='project',
                field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='rendered_bank', serialize=False, to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='text',
                field=models.TextField(blank=True, verbose_name='text'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='text_hash',
                field=models.CharField(blank=True, max_length=64, verbose_name='hash of the text'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='tokens',
                field=models.PositiveIntegerField(default=0, verbose_name='tokens'),
            ),
            migrations.AlterField(
                model_name='renderedbank',
                name='version',
                field=models.PositiveIntegerField(default=0, verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='tombstone',
                name='at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='time'),
            ),
            migrations.AlterField(
                model_name='tombstone',
                name='kind',
                field=models.CharField(choices=[('message', 'Message'), ('session', 'Chat'), ('source', 'Chat or message in another program'), ('fact', 'Fact from a chat'), ('record', 'Fact'), ('entry', 'Single memory'), ('unkept', 'Message excluded from memory'), ('block', 'Pinned text'), ('upload', 'Imported file'), ('file', 'File'), ('user', 'Other data of a user'), ('project', 'Deleted project')], max_length=8, verbose_name='kind'),
            ),
            migrations.AlterField(
                model_name='tombstone',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tombstones', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='tombstone',
                name='subject',
                field=models.CharField(help_text='An id, or the SHA-256 of an id.', max_length=64, verbose_name='ID or hash'),
            ),
            migrations.AlterField(
                model_name='vector',
                name='chunk',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='vectors', to='memory.chunk', verbose_name='search index entry'),
            ),
            migrations.AlterField(
                model_name='vector',
                name='embedder',
                field=models.CharField(max_length=200, verbose_name='embedding model'),
            ),
            migrations.AlterField(
                model_name='vector',
                name='embedding',
                field=pgvector.django.halfvec.HalfVectorField(verbose_name='vector'),
            ),
            migrations.AlterField(
                model_name='vector',
                name='indexed',
                field=models.BooleanField(default=False, help_text='Whether the vector is in the index; see vector_index.', verbose_name='in the index'),
            ),
            migrations.AlterField(
                model_name='vector',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='created_by',
                field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='events',
                field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('message.posted', 'Message posted'), ('message.edited', 'Message edited'), ('message.deleted', 'Message deleted'), ('reply.finished', 'Reply finished'), ('session.closed', 'Chat closed'), ('entry.written', 'Memory added or changed'), ('entry.rolled_up', 'Memories merged'), ('memory.proposed', 'Review needed'), ('memory.forgotten', 'Something forgotten'), ('fact.changed', 'Fact added or changed'), ('import.done', 'Import finished')], max_length=20), size=None, verbose_name='events'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='failing_since',
                field=models.DateTimeField(blank=True, null=True, verbose_name='failing since'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='failures',
                field=models.PositiveIntegerField(default=0, help_text='Failures since the last success.', verbose_name='failures'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='last_error',
                field=models.CharField(blank=True, max_length=500, verbose_name='last error'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='lease_holder',
                field=models.UUIDField(blank=True, null=True, verbose_name='leased by'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='lease_until',
                field=models.DateTimeField(blank=True, null=True, verbose_name='leased until'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='next_try_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='next attempt'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='off_because',
                field=models.CharField(blank=True, choices=[('owner', 'An owner turned it off.'), ('staff', 'An administrator turned it off.'), ('failing', 'No delivery succeeded for three days.'), ('gone', 'The receiver reported that it no longer exists (410).')], help_text='Empty: the webhook is on.', max_length=10, verbose_name='reason for being off'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='off_since',
                field=models.DateTimeField(blank=True, null=True, verbose_name='off since'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='previous_salt',
                field=models.CharField(blank=True, editable=False, max_length=32, verbose_name='previous salt'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='previous_until',
                field=models.DateTimeField(blank=True, help_text='The time until which the previous secret also signs.', null=True, verbose_name='previous secret valid until'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='salt',
                field=models.CharField(default=memory.models.webhooks.new_salt, editable=False, max_length=32, verbose_name='salt'),
            ),
            migrations.AlterField(
                model_name='webhook',
                name='url',
                field=models.CharField(max_length=2000, verbose_name='URL'),
            ),
        ]),
    ]
