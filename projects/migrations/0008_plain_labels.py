"""Reword labels and help texts in the state of migrations. The database does not change."""

import django.core.validators
import projects.core.search_languages
import projects.models.projects
from django.db import migrations, models

from projects.core.state_operations import StateOperations


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0007_plain_help_texts'),
    ]

    operations = [
        StateOperations([
        migrations.AlterField(
            model_name='project',
            name='bank_max_tokens',
            field=models.PositiveIntegerField(default=2000, help_text='Maximum size of the memories in each prompt.', validators=[django.core.validators.MinValueValidator(100), django.core.validators.MaxValueValidator(100000)], verbose_name='memory budget'),
        ),
        migrations.AlterField(
            model_name='project',
            name='blocks_max_tokens',
            field=models.PositiveIntegerField(default=1000, help_text='Maximum size of the project’s pinned text in each prompt. The same limit applies to each member’s own pinned text.', validators=[django.core.validators.MinValueValidator(100), django.core.validators.MaxValueValidator(20000)], verbose_name='pinned text budget'),
        ),
        migrations.AlterField(
            model_name='project',
            name='chat_model',
            field=models.CharField(blank=True, help_text='For example openai-chat:gpt-5-mini. Leave empty for the server default.', max_length=200, validators=[projects.models.projects.validate_model_name]),
        ),
        migrations.AlterField(
            model_name='project',
            name='day_after_days',
            field=models.PositiveIntegerField(default=1, help_text='Days after which chats can be merged into days.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(3650)], verbose_name='days before chats are merged'),
        ),
        migrations.AlterField(
            model_name='project',
            name='history_limit',
            field=models.PositiveIntegerField(default=100, help_text='How many messages of the current chat the model receives.', validators=[django.core.validators.MinValueValidator(50), django.core.validators.MaxValueValidator(1000)]),
        ),
        migrations.AlterField(
            model_name='project',
            name='idle_minutes',
            field=models.PositiveIntegerField(default=10, help_text='A chat is summarised when nobody has written for this long.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10080)]),
        ),
        migrations.AlterField(
            model_name='project',
            name='instructions',
            field=models.TextField(blank=True, help_text='How the assistant should answer. You can use a template with project.name, session.title, user.name, members, date and time.', max_length=20000, validators=[projects.models.projects.validate_instructions]),
        ),
        migrations.AlterField(
            model_name='project',
            name='keep_days',
            field=models.PositiveIntegerField(blank=True, help_text='Days without messages. The chat and everything made from it are then deleted, unless the chat or one of its memories is pinned. Leave empty to keep chats forever.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(36500)], verbose_name='delete chats after (days)'),
        ),
        migrations.AlterField(
            model_name='project',
            name='keep_deleted',
            field=models.BooleanField(default=False, help_text='The assistant still sees deleted messages, with the time of deletion.', verbose_name='keep deleted messages'),
        ),
        migrations.AlterField(
            model_name='project',
            name='memory_daily_tokens',
            field=models.PositiveIntegerField(blank=True, help_text='Tokens that models can use for memories per day. When they are used up, the work continues the next day. Leave empty for no limit.', null=True, validators=[django.core.validators.MinValueValidator(1000)], verbose_name='daily token limit'),
        ),
        migrations.AlterField(
            model_name='project',
            name='memory_enabled',
            field=models.BooleanField(default=True, verbose_name='remember chats'),
        ),
        migrations.AlterField(
            model_name='project',
            name='month_after_days',
            field=models.PositiveIntegerField(default=30, help_text='Days after which weeks can be merged into months.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(3650)], verbose_name='days before weeks are merged'),
        ),
        migrations.AlterField(
            model_name='project',
            name='review_memories',
            field=models.BooleanField(default=False, help_text='New memories are used only after an owner approves them.', verbose_name='review new memories'),
        ),
        migrations.AlterField(
            model_name='project',
            name='roll_percent',
            field=models.PositiveIntegerField(default=125, help_text='Older memories are merged when all memories exceed this percentage of the budget.', validators=[django.core.validators.MinValueValidator(100), django.core.validators.MaxValueValidator(1000)], verbose_name='merge threshold'),
        ),
        migrations.AlterField(
            model_name='project',
            name='search_language',
            field=models.CharField(blank=True, help_text='Search finds other forms of a word, such as “builds” for “build”. Leave empty for the server default.', max_length=63, validators=[projects.core.search_languages.validate_search_language], verbose_name='search language'),
        ),
        migrations.AlterField(
            model_name='project',
            name='share_raw_turns',
            field=models.BooleanField(default=False, help_text='Search results and replies can quote shared chats to all members.', verbose_name='quote shared chats'),
        ),
        migrations.AlterField(
            model_name='project',
            name='system_model',
            field=models.CharField(blank=True, help_text='A model name, or extractive for summaries without a language model. Leave empty for the server default.', max_length=200, validators=[projects.models.projects.validate_system_model_name]),
        ),
        migrations.AlterField(
            model_name='project',
            name='week_after_days',
            field=models.PositiveIntegerField(default=7, help_text='Days after which days can be merged into weeks.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(3650)], verbose_name='days before days are merged'),
        ),
        ]),
    ]
