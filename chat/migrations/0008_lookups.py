from django.db import migrations, models


def set_statistics(target: int):
    def run(apps, schema_editor):
        schema_editor.execute(
            f"ALTER TABLE chat_message ALTER COLUMN lookups SET STATISTICS {target}"
        )

    return run


class Migration(migrations.Migration):
    """Add the lookups of replies, and keep them out of the statistics of PostgreSQL."""

    dependencies = [("chat", "0007_linear_words")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="lookups",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="What a reply looked up: tool, arguments, result_count, error.",
            ),
        ),
        migrations.RunPython(set_statistics(0), set_statistics(-1)),
    ]
