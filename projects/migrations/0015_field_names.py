"""Name the fields of all models in the state of migrations. The database does not change."""

import django.core.validators
import django.db.models.deletion
import projects.core.models
import projects.models.projects
import projects.models.tokens
from django.conf import settings
from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('projects', '0014_has_files'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        StateOperations([
            migrations.AlterField(
                model_name='bucket',
                name='free_at',
                field=models.DateTimeField(verbose_name='free again at'),
            ),
            migrations.AlterField(
                model_name='bucket',
                name='subject',
                field=models.CharField(help_text='The holder and the name of the rate.', max_length=80, primary_key=True, serialize=False, verbose_name='holder and rate'),
            ),
            migrations.AlterField(
                model_name='idempotencykey',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, db_index=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='idempotencykey',
                name='key',
                field=models.CharField(help_text='A keyed digest of the key.', max_length=64, verbose_name='key'),
            ),
            migrations.AlterField(
                model_name='idempotencykey',
                name='made',
                field=models.JSONField(default=dict, help_text='The ids of the created objects.', verbose_name='created objects'),
            ),
            migrations.AlterField(
                model_name='idempotencykey',
                name='project',
                field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='idempotencykey',
                name='request',
                field=models.CharField(help_text='A keyed digest of the method, the path and the body.', max_length=64, verbose_name='request'),
            ),
            migrations.AlterField(
                model_name='idempotencykey',
                name='status',
                field=models.PositiveSmallIntegerField(help_text='The status of the first response.', verbose_name='HTTP status'),
            ),
            migrations.AlterField(
                model_name='idempotencykey',
                name='user',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='created_by',
                field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='digest',
                field=models.CharField(editable=False, max_length=64, verbose_name='digest'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='expires_at',
                field=models.DateTimeField(verbose_name='expires at'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='max_uses',
                field=models.PositiveIntegerField(blank=True, help_text='The number of people who may use the link. Empty: no limit.', null=True, verbose_name='maximum uses'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='revoked_at',
                field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name='revoked at'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='role',
                field=models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='editor', max_length=10, verbose_name='role'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='user',
                field=models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='username',
                field=models.CharField(blank=True, editable=False, max_length=150, null=True, verbose_name='username'),
            ),
            migrations.AlterField(
                model_name='invitation',
                name='uses',
                field=models.PositiveIntegerField(default=0, editable=False, verbose_name='uses'),
            ),
            migrations.AlterField(
                model_name='membership',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='membership',
                name='project',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='membership',
                name='role',
                field=models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='editor', max_length=10, verbose_name='role'),
            ),
            migrations.AlterField(
                model_name='membership',
                name='user',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='project',
                name='archived_at',
                field=models.DateTimeField(blank=True, null=True, verbose_name='archived at'),
            ),
            migrations.AlterField(
                model_name='project',
                name='chat_model',
                field=models.CharField(blank=True, help_text='For example openai-chat:gpt-5-mini. Leave empty for the server default.', max_length=200, validators=[projects.models.projects.validate_model_name], verbose_name='chat model'),
            ),
            migrations.AlterField(
                model_name='project',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='project',
                name='day_after_days',
                field=models.PositiveIntegerField(default=1, help_text='Chats can be merged into days after this many days.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(3650)], verbose_name='days before chats are merged'),
            ),
            migrations.AlterField(
                model_name='project',
                name='demo_progress',
                field=models.PositiveSmallIntegerField(editable=False, null=True, verbose_name='progress of the demo'),
            ),
            migrations.AlterField(
                model_name='project',
                name='has_files',
                field=models.BooleanField(db_default=False, default=False, editable=False, verbose_name='has files'),
            ),
            migrations.AlterField(
                model_name='project',
                name='history_limit',
                field=models.PositiveIntegerField(default=100, help_text='How many messages of the current chat the model receives.', validators=[django.core.validators.MinValueValidator(50), django.core.validators.MaxValueValidator(1000)], verbose_name='messages sent to the model'),
            ),
            migrations.AlterField(
                model_name='project',
                name='idle_minutes',
                field=models.PositiveIntegerField(default=10, help_text='A chat is summarised when nobody has written for this long.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10080)], verbose_name='summarise after (minutes)'),
            ),
            migrations.AlterField(
                model_name='project',
                name='instructions',
                field=models.TextField(blank=True, help_text='How the assistant should answer. You can use a template with project.name, session.title, user.name, members, date, time and context.', max_length=20000, validators=[projects.models.projects.validate_instructions], verbose_name='instructions'),
            ),
            migrations.AlterField(
                model_name='project',
                name='month_after_days',
                field=models.PositiveIntegerField(default=30, help_text='Weeks can be merged into months after this many days.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(3650)], verbose_name='days before weeks are merged'),
            ),
            migrations.AlterField(
                model_name='project',
                name='name',
                field=models.CharField(max_length=120, verbose_name='name'),
            ),
            migrations.AlterField(
                model_name='project',
                name='slug',
                field=models.SlugField(max_length=60, unique=True, verbose_name='slug'),
            ),
            migrations.AlterField(
                model_name='project',
                name='system_model',
                field=models.CharField(blank=True, help_text='A model name, or extractive for summaries without a language model. Leave empty for the server default.', max_length=200, validators=[projects.models.projects.validate_system_model_name], verbose_name='model for summaries'),
            ),
            migrations.AlterField(
                model_name='project',
                name='week_after_days',
                field=models.PositiveIntegerField(default=7, help_text='Days can be merged into weeks after this many days.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(3650)], verbose_name='days before days are merged'),
            ),
            migrations.AlterField(
                model_name='servermodels',
                name='changed_at',
                field=models.DateTimeField(auto_now=True, verbose_name='changed at'),
            ),
            migrations.AlterField(
                model_name='servermodels',
                name='chat_model',
                field=models.CharField(blank=True, max_length=200, verbose_name='chat model'),
            ),
            migrations.AlterField(
                model_name='servermodels',
                name='system_model',
                field=models.CharField(blank=True, max_length=200, verbose_name='model for summaries'),
            ),
            migrations.AlterField(
                model_name='spendinglimit',
                name='group',
                field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group', verbose_name='group'),
            ),
            migrations.AlterField(
                model_name='spendinglimit',
                name='project',
                field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='spendinglimit',
                name='token',
                field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.KNOX_TOKEN_MODEL, to_field='public_id', verbose_name='API token'),
            ),
            migrations.AlterField(
                model_name='spendinglimit',
                name='user',
                field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='spentinvitation',
                name='created_at',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='spentinvitation',
                name='invitation',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='spent', to='projects.invitation', verbose_name='invitation'),
            ),
            migrations.AlterField(
                model_name='spentinvitation',
                name='project',
                field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='spentinvitation',
                name='user',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
            migrations.AlterField(
                model_name='token',
                name='created',
                field=models.DateTimeField(auto_now_add=True, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='token',
                name='expiry',
                field=models.DateTimeField(blank=True, null=True, verbose_name='expires at'),
            ),
            migrations.AlterField(
                model_name='token',
                name='last_used_at',
                field=models.DateTimeField(blank=True, editable=False, help_text='Rounded to the minute.', null=True, verbose_name='last used'),
            ),
            migrations.AlterField(
                model_name='token',
                name='name',
                field=models.CharField(blank=True, max_length=120, verbose_name='name'),
            ),
            migrations.AlterField(
                model_name='token',
                name='project',
                field=models.ForeignKey(blank=True, help_text='The only project that the token may use. Empty: all projects of the user.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project', verbose_name='project'),
            ),
            migrations.AlterField(
                model_name='token',
                name='public_id',
                field=models.UUIDField(default=projects.core.models.new_id, editable=False, help_text='The id in API responses and log lines, in place of the digest.', unique=True, verbose_name='public ID'),
            ),
            migrations.AlterField(
                model_name='token',
                name='scopes',
                field=models.JSONField(default=projects.models.tokens.all_scopes, validators=[projects.models.tokens.validate_scopes], verbose_name='permissions'),
            ),
            migrations.AlterField(
                model_name='token',
                name='user',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='auth_token_set', to=settings.AUTH_USER_MODEL, verbose_name='user'),
            ),
        ]),
    ]
