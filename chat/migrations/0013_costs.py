import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import projects.core.models

KINDS = [
    ("reply", "reply"),
    ("title", "title"),
    ("embedding", "search index"),
    ("conversation", "chat summary"),
    ("merge", "merge of partial chat summaries"),
    ("digest", "later summary"),
    ("again", "later summary, second try with missing details"),
]
# The table of calls is one of `memory` until here. It stays, and belongs to `chat` from now on.
CALL_AS_IT_WAS = migrations.CreateModel(
    name="Call",
    fields=[
        (
            "id",
            models.UUIDField(
                default=projects.core.models.new_id,
                editable=False,
                primary_key=True,
                serialize=False,
            ),
        ),
        ("kind", models.CharField(choices=KINDS, max_length=12)),
        ("model", models.CharField(max_length=200)),
        ("session_id", models.UUIDField(blank=True, null=True)),
        ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
        ("duration_ms", models.PositiveIntegerField(blank=True, null=True)),
        ("input_tokens", models.PositiveIntegerField(default=0)),
        ("output_tokens", models.PositiveIntegerField(default=0)),
        (
            "cost",
            models.DecimalField(
                blank=True, decimal_places=6, help_text="US dollars.", max_digits=12, null=True
            ),
        ),
        (
            "outcome",
            models.CharField(
                blank=True,
                help_text="“answered”, or the reason of the failure.",
                max_length=200,
            ),
        ),
        (
            "project",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="calls",
                to="projects.project",
            ),
        ),
    ],
    options={
        "verbose_name": "model call",
        "verbose_name_plural": "model calls",
        "db_table": "memory_call",
        "indexes": [models.Index(fields=["project", "-started_at"], name="call_recent")],
    },
)


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0012_cleared_chats"),
        ("memory", "0014_webhook_events"),
        ("projects", "0011_demo_progress"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[CALL_AS_IT_WAS]),
        migrations.AddField(
            "Call",
            "user",
            models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            "Call",
            "token_id",
            models.UUIDField(
                blank=True, help_text="The public id of the API token of the request.", null=True
            ),
        ),
        migrations.AddField(
            "Call",
            "message_id",
            models.UUIDField(blank=True, help_text="The reply.", null=True),
        ),
        migrations.AddField(
            "Call",
            "cached_tokens",
            models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="Input tokens that the provider read from its cache.",
            ),
        ),
        migrations.AddField(
            "Call", "reserved_tokens", models.PositiveIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            "Call",
            "reserved_cost",
            models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True),
        ),
        migrations.AddField("Call", "reserved_until", models.DateTimeField(blank=True, null=True)),
        migrations.CreateModel(
            name="ModelPrice",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=projects.core.models.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        help_text="The name as projects use it, such as openai-chat:gpt-4o.",
                        max_length=200,
                        unique=True,
                        verbose_name="model",
                    ),
                ),
                (
                    "input_price",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="US dollars for a million tokens.",
                        max_digits=12,
                        verbose_name="input",
                    ),
                ),
                (
                    "cached_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Empty: as other input.",
                        max_digits=12,
                        null=True,
                        verbose_name="cached input",
                    ),
                ),
                (
                    "output_price",
                    models.DecimalField(
                        decimal_places=6, default=0, max_digits=12, verbose_name="output"
                    ),
                ),
            ],
            options={
                "verbose_name": "model price",
                "verbose_name_plural": "model prices",
                "ordering": ["model"],
            },
        ),
    ]
