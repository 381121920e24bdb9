"""Name the fields of all models in the state of migrations. The database does not change."""

import chat.models.attachments
import chat.models.imports
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import projects.models.projects
from django.conf import settings
from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0019_help_texts_of_messages'),
        ('projects', '0014_has_files'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        StateOperations([
            migrations.AlterField(
                model_name='attachment',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='description',
                field=models.CharField(blank=True, help_text='Alternative text for readers and models that cannot see the image.', max_length=1000, verbose_name='description'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='file',
                field=models.FileField(max_length=200, upload_to=chat.models.attachments.stored_at, verbose_name='file'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='height',
                field=models.PositiveIntegerField(help_text='Pixels.', verbose_name='height'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='media_type',
                field=models.CharField(max_length=40, verbose_name='media type'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='message',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='chat.message', verbose_name='message'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='name',
                field=models.CharField(blank=True, max_length=200, verbose_name='name'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='session',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='sha256',
                field=models.CharField(max_length=64, verbose_name='SHA-256'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='size',
                field=models.PositiveIntegerField(help_text='Bytes.', verbose_name='size'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='uploaded_by',
                field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='uploaded by'),
            ),
            migrations.AlterField(
                model_name='attachment',
                name='width',
                field=models.PositiveIntegerField(help_text='Pixels.', verbose_name='width'),
            ),
            migrations.AlterField(
                model_name='call',
                name='cached_tokens',
                field=models.PositiveIntegerField(db_default=0, default=0, help_text='Input tokens that the provider read from its cache.', verbose_name='cached tokens'),
            ),
            migrations.AlterField(
                model_name='call',
                name='cost',
                field=models.DecimalField(blank=True, decimal_places=6, help_text='US dollars.', max_digits=12, null=True, verbose_name='cost'),
            ),
            migrations.AlterField(
                model_name='call',
                name='duration_ms',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='duration (ms)'),
            ),
            migrations.AlterField(
                model_name='call',
                name='input_tokens',
                field=models.PositiveIntegerField(default=0, verbose_name='input tokens'),
            ),
            migrations.AlterField(
                model_name='call',
                name='kind',
                field=models.CharField(choices=[('reply', 'reply'), ('title', 'title'), ('embedding', 'search index'), ('conversation', 'chat summary'), ('merge', 'merge of partial chat summaries'), ('digest', 'later summary'), ('again', 'later summary, second try with missing details')], max_length=12, verbose_name='kind'),
            ),
            migrations.AlterField(
                model_name='call',
                name='message_id',
                field=models.UUIDField(blank=True, help_text='The reply.', null=True, verbose_name='message ID'),
            ),
            migrations.AlterField(
                model_name='call',
                name='model',
                field=models.CharField(max_length=200, verbose_name='model'),
            ),
            migrations.AlterField(
                model_name='call',
                name='outcome',
                field=models.CharField(blank=True, help_text='“answered”, or the reason of the failure.', max_length=200, verbose_name='outcome'),
            ),
            migrations.AlterField(
                model_name='call',
                name='output_tokens',
                field=models.PositiveIntegerField(default=0, verbose_name='output tokens'),
            ),
            migrations.AlterField(
                model_name='call',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='calls', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='call',
                name='reserved_cost',
                field=models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True, verbose_name='reserved cost'),
            ),
            migrations.AlterField(
                model_name='call',
                name='reserved_tokens',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='reserved tokens'),
            ),
            migrations.AlterField(
                model_name='call',
                name='reserved_until',
                field=models.DateTimeField(blank=True, null=True, verbose_name='reserved until'),
            ),
            migrations.AlterField(
                model_name='call',
                name='session_id',
                field=models.UUIDField(blank=True, null=True, verbose_name='chat ID'),
            ),
            migrations.AlterField(
                model_name='call',
                name='started_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='started at'),
            ),
            migrations.AlterField(
                model_name='call',
                name='token_id',
                field=models.UUIDField(blank=True, help_text='The public id of the API token of the request.', null=True, verbose_name='API token ID'),
            ),
            migrations.AlterField(
                model_name='call',
                name='user',
                field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='fileremoval',
                name='act',
                field=models.UUIDField(blank=True, help_text='The forget request that caused the removal.', null=True, verbose_name='forget request'),
            ),
            migrations.AlterField(
                model_name='fileremoval',
                name='attempts',
                field=models.PositiveIntegerField(default=0, verbose_name='attempts'),
            ),
            migrations.AlterField(
                model_name='fileremoval',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='fileremoval',
                name='last_error',
                field=models.CharField(blank=True, help_text='The class of the error.', max_length=100, verbose_name='last error'),
            ),
            migrations.AlterField(
                model_name='fileremoval',
                name='next_try_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='next attempt'),
            ),
            migrations.AlterField(
                model_name='fileremoval',
                name='path',
                field=models.CharField(max_length=200, verbose_name='path'),
            ),
            migrations.AlterField(
                model_name='fileremoval',
                name='project_id',
                field=models.UUIDField(verbose_name='project ID'),
            ),
            migrations.AlterField(
                model_name='import',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='import',
                name='errors',
                field=models.JSONField(blank=True, default=list, verbose_name='errors'),
            ),
            migrations.AlterField(
                model_name='import',
                name='file',
                field=models.FileField(blank=True, max_length=200, upload_to=chat.models.imports.stored_at, verbose_name='file'),
            ),
            migrations.AlterField(
                model_name='import',
                name='finished_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='finished at'),
            ),
            migrations.AlterField(
                model_name='import',
                name='format',
                field=models.CharField(default='auto', max_length=20, verbose_name='format'),
            ),
            migrations.AlterField(
                model_name='import',
                name='imported',
                field=models.PositiveIntegerField(default=0, verbose_name='imported'),
            ),
            migrations.AlterField(
                model_name='import',
                name='name',
                field=models.CharField(max_length=200, verbose_name='name'),
            ),
            migrations.AlterField(
                model_name='import',
                name='progress',
                field=models.PositiveSmallIntegerField(default=0, help_text='Percent.', verbose_name='progress'),
            ),
            migrations.AlterField(
                model_name='import',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='import',
                name='refused',
                field=models.PositiveIntegerField(default=0, verbose_name='rejected'),
            ),
            migrations.AlterField(
                model_name='import',
                name='sessions',
                field=models.PositiveIntegerField(default=0, verbose_name='chats'),
            ),
            migrations.AlterField(
                model_name='import',
                name='skipped',
                field=models.PositiveIntegerField(default=0, verbose_name='skipped'),
            ),
            migrations.AlterField(
                model_name='import',
                name='state',
                field=models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=10, verbose_name='state'),
            ),
            migrations.AlterField(
                model_name='import',
                name='user',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='importedstretch',
                name='first_seq',
                field=models.PositiveIntegerField(verbose_name='first message'),
            ),
            migrations.AlterField(
                model_name='importedstretch',
                name='last_seq',
                field=models.PositiveIntegerField(verbose_name='last message'),
            ),
            migrations.AlterField(
                model_name='importedstretch',
                name='project',
                field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='importedstretch',
                name='session',
                field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='importedstretch',
                name='upload',
                field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='stretches', to='chat.import', verbose_name='import'),
            ),
            migrations.AlterField(
                model_name='message',
                name='author',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='messages', to=settings.AUTH_USER_MODEL, verbose_name='author'),
            ),
            migrations.AlterField(
                model_name='message',
                name='author_name',
                field=models.CharField(blank=True, help_text='The speaker of an imported message.', max_length=120, verbose_name='author’s name'),
            ),
            migrations.AlterField(
                model_name='message',
                name='copied_from',
                field=models.ForeignKey(blank=True, help_text='In a fork: the original, which memory covers. The copy is forgotten with it.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='copies', to='chat.message', verbose_name='copied from'),
            ),
            migrations.AlterField(
                model_name='message',
                name='cost',
                field=models.DecimalField(blank=True, decimal_places=6, help_text='US dollars.', max_digits=12, null=True, verbose_name='cost'),
            ),
            migrations.AlterField(
                model_name='message',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='message',
                name='deleted_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='deleted at'),
            ),
            migrations.AlterField(
                model_name='message',
                name='edited_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='edited at'),
            ),
            migrations.AlterField(
                model_name='message',
                name='error',
                field=models.CharField(blank=True, help_text='The reason of the failure, as shown to users.', max_length=500, verbose_name='error'),
            ),
            migrations.AlterField(
                model_name='message',
                name='first_token_ms',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='first token (ms)'),
            ),
            migrations.AlterField(
                model_name='message',
                name='forgotten_at',
                field=models.DateTimeField(blank=True, help_text='The text and everything derived from it are deleted since then.', null=True, verbose_name='forgotten at'),
            ),
            migrations.AlterField(
                model_name='message',
                name='heartbeat_at',
                field=models.DateTimeField(blank=True, help_text='The last heartbeat of the process that writes the reply.', null=True, verbose_name='heartbeat'),
            ),
            migrations.AlterField(
                model_name='message',
                name='hidden_at',
                field=models.DateTimeField(blank=True, editable=False, help_text='When a moderator hid the message. It counts as deleted until it is shown.', null=True, verbose_name='hidden at'),
            ),
            migrations.AlterField(
                model_name='message',
                name='input_tokens',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='input tokens'),
            ),
            migrations.AlterField(
                model_name='message',
                name='lookups',
                field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='What a reply looked up: tool, arguments, result_count, error.', verbose_name='lookups'),
            ),
            migrations.AlterField(
                model_name='message',
                name='model',
                field=models.CharField(blank=True, max_length=200, verbose_name='model'),
            ),
            migrations.AlterField(
                model_name='message',
                name='output_tokens',
                field=models.PositiveIntegerField(blank=True, null=True, verbose_name='output tokens'),
            ),
            migrations.AlterField(
                model_name='message',
                name='parent',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='chat.message', verbose_name='previous message'),
            ),
            migrations.AlterField(
                model_name='message',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='message',
                name='receipt',
                field=models.JSONField(blank=True, default=dict, help_text='The items of the prompt, by id and revision.', verbose_name='receipt'),
            ),
            migrations.AlterField(
                model_name='message',
                name='remembered',
                field=models.BooleanField(default=True, verbose_name='remembered'),
            ),
            migrations.AlterField(
                model_name='message',
                name='role',
                field=models.CharField(choices=[('user', 'User'), ('assistant', 'Assistant'), ('system', 'System'), ('tool', 'Tool')], max_length=10, verbose_name='role'),
            ),
            migrations.AlterField(
                model_name='message',
                name='seq',
                field=models.PositiveIntegerField(verbose_name='number'),
            ),
            migrations.AlterField(
                model_name='message',
                name='session',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='message',
                name='source_key',
                field=models.CharField(blank=True, editable=False, max_length=300, null=True, verbose_name='ID at the source'),
            ),
            migrations.AlterField(
                model_name='message',
                name='status',
                field=models.CharField(choices=[('pending', 'Pending'), ('streaming', 'Streaming'), ('complete', 'Complete'), ('stopped', 'Stopped'), ('interrupted', 'Interrupted'), ('failed', 'Failed')], default='complete', max_length=12, verbose_name='status'),
            ),
            migrations.AlterField(
                model_name='message',
                name='stop_requested',
                field=models.BooleanField(default=False, editable=False, help_text='A reader stopped the reply.', verbose_name='stop requested'),
            ),
            migrations.AlterField(
                model_name='message',
                name='text',
                field=models.TextField(blank=True, verbose_name='text'),
            ),
            migrations.AlterField(
                model_name='message',
                name='tokens',
                field=models.PositiveIntegerField(default=0, help_text='Tokens of the text (cl100k_base).', verbose_name='tokens'),
            ),
            migrations.AlterField(
                model_name='message',
                name='tool_call_id',
                field=models.TextField(blank=True, help_text="In a tool's result: the id of the call.", verbose_name='tool call ID'),
            ),
            migrations.AlterField(
                model_name='message',
                name='tool_calls',
                field=models.JSONField(blank=True, default=list, help_text="The reply's calls of tools that the API client declared: id, name, arguments.", verbose_name='tool calls'),
            ),
            migrations.AlterField(
                model_name='message',
                name='version',
                field=models.PositiveIntegerField(default=1, verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='messagerevision',
                name='edited_at',
                field=models.DateTimeField(help_text='The time at which another text replaced it.', verbose_name='edited at'),
            ),
            migrations.AlterField(
                model_name='messagerevision',
                name='edited_by',
                field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='edited by'),
            ),
            migrations.AlterField(
                model_name='messagerevision',
                name='message',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='chat.message', verbose_name='message'),
            ),
            migrations.AlterField(
                model_name='messagerevision',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='messagerevision',
                name='text',
                field=models.TextField(blank=True, verbose_name='text'),
            ),
            migrations.AlterField(
                model_name='messagerevision',
                name='version',
                field=models.PositiveIntegerField(help_text='The version of the message that had this text.', verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='modelprovider',
                name='address',
                field=models.CharField(blank=True, help_text='Of an OpenAI-compatible server, with its /v1.', max_length=2000, verbose_name='address'),
            ),
            migrations.AlterField(
                model_name='modelprovider',
                name='catalogue',
                field=models.JSONField(default=list, editable=False, help_text='What is known of each model: `chat.providers.catalogue.KnownModel`.', verbose_name='models'),
            ),
            migrations.AlterField(
                model_name='modelprovider',
                name='checked_at',
                field=models.DateTimeField(editable=False, null=True, verbose_name='checked at'),
            ),
            migrations.AlterField(
                model_name='modelprovider',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='modelprovider',
                name='encrypted_key',
                field=models.TextField(blank=True, editable=False, help_text='Empty for Ollama, and for a provider whose key is in the environment only.', verbose_name='encrypted key'),
            ),
            migrations.AlterField(
                model_name='modelprovider',
                name='kind',
                field=models.CharField(choices=[('openai-chat', 'OpenAI'), ('anthropic', 'Anthropic'), ('openrouter', 'OpenRouter'), ('google', 'Google'), ('mistral', 'Mistral'), ('groq', 'Groq'), ('ollama', 'Ollama'), ('compatible', 'OpenAI-compatible server')], max_length=20, verbose_name='kind'),
            ),
            migrations.AlterField(
                model_name='reaction',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='reaction',
                name='emoji',
                field=models.CharField(max_length=32, verbose_name='emoji'),
            ),
            migrations.AlterField(
                model_name='reaction',
                name='message',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reactions', to='chat.message', verbose_name='message'),
            ),
            migrations.AlterField(
                model_name='reaction',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='reaction',
                name='user',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reactions', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='savedprompt',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='saved_prompts', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='savedprompt',
                name='updated_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='changed at'),
            ),
            migrations.AlterField(
                model_name='savedprompt',
                name='user',
                field=models.ForeignKey(blank=True, help_text='The user of a personal prompt. Empty: a prompt of the project.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='savedprompt',
                name='written_by',
                field=models.ForeignKey(blank=True, help_text='Who wrote the text last.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='seen',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='seen',
                name='seq',
                field=models.PositiveIntegerField(verbose_name='read up to message'),
            ),
            migrations.AlterField(
                model_name='seen',
                name='session',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='seen', to='chat.session', verbose_name='chat'),
            ),
            migrations.AlterField(
                model_name='seen',
                name='user',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='session',
                name='archived_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='archived at'),
            ),
            migrations.AlterField(
                model_name='session',
                name='chat_model',
                field=models.CharField(blank=True, db_default='', default='', help_text="The model that answers. Empty: the project's.", max_length=200, validators=[projects.models.projects.validate_model_name], verbose_name='chat model'),
            ),
            migrations.AlterField(
                model_name='session',
                name='cleared_through',
                field=models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='The highest `seq` when the chat was cleared. Lists begin after it.', verbose_name='cleared up to message'),
            ),
            migrations.AlterField(
                model_name='session',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='session',
                name='creator',
                field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='sessions', to=settings.AUTH_USER_MODEL, verbose_name='started by'),
            ),
            migrations.AlterField(
                model_name='session',
                name='deleted_at',
                field=models.DateTimeField(blank=True, editable=False, help_text='Withheld since then; forgotten after the undo window.', null=True, verbose_name='deleted at'),
            ),
            migrations.AlterField(
                model_name='session',
                name='head',
                field=models.ForeignKey(blank=True, editable=False, help_text='The last message of the active path.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.message', verbose_name='last message of the active path'),
            ),
            migrations.AlterField(
                model_name='session',
                name='history_limit',
                field=models.PositiveIntegerField(blank=True, help_text="Messages that the model sees. Empty: the project's limit.", null=True, validators=[django.core.validators.MinValueValidator(50), django.core.validators.MaxValueValidator(1000)], verbose_name='messages sent to the model'),
            ),
            migrations.AlterField(
                model_name='session',
                name='kind',
                field=models.CharField(choices=[('chat', 'Chat'), ('notes', 'Notes')], default='chat', editable=False, help_text='The assistant does not reply to notes.', max_length=10, verbose_name='kind'),
            ),
            migrations.AlterField(
                model_name='session',
                name='last_activity_at',
                field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='last activity'),
            ),
            migrations.AlterField(
                model_name='session',
                name='last_seq',
                field=models.PositiveIntegerField(default=0, editable=False, verbose_name='last message'),
            ),
            migrations.AlterField(
                model_name='session',
                name='pinned',
                field=models.BooleanField(default=False, verbose_name='pinned'),
            ),
            migrations.AlterField(
                model_name='session',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='session',
                name='reasoning_effort',
                field=models.CharField(blank=True, choices=[('low', 'Low'), ('medium', 'Medium'), ('high', 'High')], db_default='', default='', max_length=10, verbose_name='reasoning effort'),
            ),
            migrations.AlterField(
                model_name='session',
                name='remembered',
                field=models.BooleanField(default=True, help_text="New messages are added to the project's memory.", verbose_name='remembered'),
            ),
            migrations.AlterField(
                model_name='session',
                name='share_key',
                field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='The key of the link by which all members may read the chat. Empty: no link.', max_length=43, verbose_name='key of the link for members'),
            ),
            migrations.AlterField(
                model_name='session',
                name='source_key',
                field=models.CharField(blank=True, editable=False, help_text='The id of the conversation at its source.', max_length=300, null=True, verbose_name='ID at the source'),
            ),
            migrations.AlterField(
                model_name='session',
                name='status',
                field=models.CharField(choices=[('active', 'Active'), ('closed', 'Closed')], default='active', max_length=10, verbose_name='status'),
            ),
            migrations.AlterField(
                model_name='session',
                name='tags',
                field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='Words by which people group chats.', verbose_name='tags'),
            ),
            migrations.AlterField(
                model_name='session',
                name='temperature',
                field=models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(2)], verbose_name='temperature'),
            ),
            migrations.AlterField(
                model_name='session',
                name='title',
                field=models.CharField(blank=True, max_length=200, verbose_name='title'),
            ),
            migrations.AlterField(
                model_name='session',
                name='title_by_hand',
                field=models.BooleanField(default=False, editable=False, help_text='A person wrote the title.', verbose_name='title by hand'),
            ),
            migrations.AlterField(
                model_name='session',
                name='version',
                field=models.PositiveIntegerField(default=0, editable=False, verbose_name='version'),
            ),
            migrations.AlterField(
                model_name='session',
                name='visibility',
                field=models.CharField(choices=[('project', 'Everyone in the project'), ('private', 'Only me')], default='project', max_length=10, verbose_name='visibility'),
            ),
        ]),
    ]
