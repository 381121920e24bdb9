"""Add files, their versions and their passages, and let chunks quote them."""

import django.db.models.deletion
import django.utils.timezone
import memory.models.files
import projects.core.models
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

# All ways to delete a version of a file, such as the deletion of its chat, delete its chunks.
TRIGGER = """
CREATE FUNCTION memory_file_revision_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memory_vector v USING memory_chunk c
    WHERE c.project_id = OLD.project_id AND c.source_type = 'file' AND c.source = OLD.id
        AND v.project_id = OLD.project_id AND v.chunk_id = c.id;
    DELETE FROM memory_chunk
    WHERE project_id = OLD.project_id AND source_type = 'file' AND source = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER file_revision_deleted AFTER DELETE ON memory_filerevision
    FOR EACH ROW EXECUTE FUNCTION memory_file_revision_deleted();
"""
NO_TRIGGER = """
DROP TRIGGER file_revision_deleted ON memory_filerevision;
DROP FUNCTION memory_file_revision_deleted();
"""
# `pg_stats` would keep samples of what was deleted since.
NO_SAMPLES = """
ALTER TABLE memory_file ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE memory_filerevision
    ALTER COLUMN title SET STATISTICS 0,
    ALTER COLUMN reason SET STATISTICS 0,
    ALTER COLUMN warnings SET STATISTICS 0,
    ALTER COLUMN last_error SET STATISTICS 0;
ALTER TABLE memory_filepassage
    ALTER COLUMN label SET STATISTICS 0,
    ALTER COLUMN headings SET STATISTICS 0,
    ALTER COLUMN text SET STATISTICS 0;
"""


def create_trigger(apps, schema_editor):
    schema_editor.execute(TRIGGER)
    schema_editor.execute(NO_SAMPLES)


def drop_trigger(apps, schema_editor):
    schema_editor.execute(NO_TRIGGER)


class Migration(migrations.Migration):
    # So that the validation locks out no writer.
    atomic = False

    dependencies = [
        ('chat', '0013_costs'),
        ('memory', '0016_calls_belong_to_chat'),
        ('projects', '0011_demo_progress'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='File',
            fields=[
                ('id', models.UUIDField(default=projects.core.models.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('uses', models.PositiveIntegerField(db_default=0, default=0, help_text='The number of prompts that contained a passage.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('changed_at', models.DateTimeField(default=django.utils.timezone.now, help_text='When its version was added.')),
            ],
            options={
                'verbose_name': 'file',
                'verbose_name_plural': 'files',
            },
        ),
        migrations.CreateModel(
            name='FilePassage',
            fields=[
                ('id', models.UUIDField(default=projects.core.models.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField(help_text='The place in the document, from 1.')),
                ('section', models.PositiveIntegerField(help_text='The number of its page or section, from 1.')),
                ('page', models.PositiveIntegerField(blank=True, null=True)),
                ('label', models.CharField(blank=True, help_text='Such as “p. 3”.', max_length=200)),
                ('headings', models.CharField(blank=True, help_text='The headings above it, as a path.', max_length=1000)),
                ('text', models.TextField()),
            ],
            options={
                'verbose_name': 'passage of a file',
                'verbose_name_plural': 'passages of files',
            },
        ),
        migrations.CreateModel(
            name='FileRevision',
            fields=[
                ('lease_holder', models.UUIDField(blank=True, null=True)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('failures', models.PositiveIntegerField(default=0, help_text='Failures since the last success.')),
                ('next_try_at', models.DateTimeField(blank=True, null=True)),
                ('last_error', models.CharField(blank=True, max_length=500)),
                ('id', models.UUIDField(default=projects.core.models.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('media_type', models.CharField(blank=True, max_length=100)),
                ('title', models.CharField(blank=True, max_length=300)),
                ('size', models.PositiveBigIntegerField(help_text='Bytes.')),
                ('sha256', models.CharField(max_length=64)),
                ('file', models.FileField(max_length=200, upload_to=memory.models.files.stored_at)),
                ('page_count', models.PositiveIntegerField(default=0)),
                ('passage_count', models.PositiveIntegerField(default=0)),
                ('indexed_passages', models.PositiveIntegerField(default=0)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('reading', 'Reading'), ('indexing', 'Indexing'), ('ready', 'Ready'), ('failed', 'Failed')], default='waiting', max_length=10)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('warnings', models.JSONField(blank=True, default=list)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name': 'version of a file',
                'verbose_name_plural': 'versions of files',
            },
        ),
        migrations.RemoveConstraint(
            model_name='chunk',
            name='chunk_source_is_known',
        ),
        migrations.AlterField(
            model_name='activity',
            name='verb',
            field=models.CharField(choices=[('summarised', 'summarised a chat'), ('rolled_up', 'merged memories into'), ('rewritten', 'rewrote'), ('dissolved', 'removed because all sources were deleted'), ('faded', 'stopped sending memories (no room)'), ('returned', 'resumed sending memories'), ('failed', 'failed'), ('proposed', 'sent for review'), ('approved', 'approved'), ('checked', 'confirmed'), ('rejected', 'rejected'), ('edited', 'edited'), ('pinned', 'pinned'), ('unpinned', 'unpinned'), ('hidden', 'hid'), ('shown', 'showed again'), ('deleted', 'deleted'), ('chat_closed', 'closed'), ('archived', 'archived'), ('unarchived', 'unarchived'), ('redacted', 'removed text from'), ('asked_anew', 'requested a rewrite of'), ('forgotten', 'forgot'), ('block_kept', 'changed pinned text'), ('block_gone', 'deleted pinned text'), ('read', 'opened the private text of'), ('recorded', 'added'), ('closed', 'ended'), ('member_added', 'added a member'), ('member_gone', 'removed a member'), ('role_changed', 'changed a role'), ('invited', 'created an invitation'), ('imported', 'imported chats'), ('joined', 'joined by invitation'), ('file_added', 'added a file')], max_length=12),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='source',
            field=models.UUIDField(help_text='The session of messages, the entry of a summary, the fact, or the version of a file.'),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='source_type',
            field=models.CharField(choices=[('turn', 'what was said'), ('note', 'a note'), ('entry', 'a summary'), ('fact', 'a fact'), ('file', 'a file')], max_length=10),
        ),
        migrations.AlterField(
            model_name='tombstone',
            name='kind',
            field=models.CharField(choices=[('message', 'Message'), ('session', 'Chat'), ('source', 'Chat or message in another program'), ('fact', 'Fact from a chat'), ('record', 'Fact'), ('entry', 'Single memory'), ('unkept', 'Message excluded from memory'), ('block', 'Pinned text'), ('upload', 'Imported file'), ('file', 'File'), ('user', 'Other data of a user'), ('project', 'Deleted project')], max_length=8),
        ),
        AddConstraintNotValid(
            model_name='chunk',
            constraint=models.CheckConstraint(condition=models.Q(('source_type__in', ['turn', 'note', 'entry', 'fact', 'file'])), name='chunk_source_is_known'),
        ),
        ValidateConstraint(model_name='chunk', name='chunk_source_is_known'),
        migrations.AddField(
            model_name='file',
            name='added_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='file',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='files', to='projects.project'),
        ),
        migrations.AddField(
            model_name='file',
            name='session',
            field=models.ForeignKey(blank=True, help_text='The only chat that has the file. Empty: the whole project.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='files', to='chat.session'),
        ),
        migrations.AddField(
            model_name='filepassage',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project'),
        ),
        migrations.AddField(
            model_name='filerevision',
            name='added_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='filerevision',
            name='document',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memory.file'),
        ),
        migrations.AddField(
            model_name='filerevision',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project'),
        ),
        migrations.AddField(
            model_name='filepassage',
            name='revision',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passages', to='memory.filerevision'),
        ),
        migrations.AddConstraint(
            model_name='file',
            constraint=models.UniqueConstraint(fields=('project', 'session', 'name'), name='one_file_a_name', nulls_distinct=False),
        ),
        migrations.AddIndex(
            model_name='filerevision',
            index=models.Index(fields=['project', 'sha256'], name='file_revision_of_bytes'),
        ),
        migrations.AddIndex(
            model_name='filerevision',
            index=models.Index(condition=models.Q(('state__in', ('waiting', 'reading', 'indexing'))), fields=['project'], name='file_revision_due'),
        ),
        migrations.AddConstraint(
            model_name='filerevision',
            constraint=models.UniqueConstraint(fields=('project', 'document', 'number'), name='one_file_revision_a_number'),
        ),
        migrations.AddConstraint(
            model_name='filerevision',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'reading', 'indexing', 'ready', 'failed'])), name='file_state_is_known'),
        ),
        migrations.AddIndex(
            model_name='filepassage',
            index=models.Index(fields=['project', 'revision', 'section'], name='passage_section'),
        ),
        migrations.AddConstraint(
            model_name='filepassage',
            constraint=models.UniqueConstraint(fields=('project', 'revision', 'number'), name='one_file_passage_a_number'),
        ),
        migrations.RunPython(create_trigger, drop_trigger),
    ]
