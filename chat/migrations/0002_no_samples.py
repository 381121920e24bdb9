"""PostgreSQL keeps samples of what it analyses: none of what people say (TRAPS: pg_stats)."""

from django.db import migrations

COLUMNS = (
    ("chat_message", "text"),
    ("chat_message", "author_name"),
    ("chat_message", "source_key"),
    ("chat_message", "tool_calls"),
    ("chat_message", "tool_call_id"),
    ("chat_messagerevision", "text"),
    ("chat_session", "title"),
    ("chat_session", "source_key"),
    ("chat_attachment", "name"),
    ("chat_attachment", "description"),
    ("chat_import", "name"),
    ("chat_import", "errors"),
)


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_initial")]

    operations = [
        *(
            migrations.RunSQL(
                f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0",
                migrations.RunSQL.noop,
            )
            for table, column in COLUMNS
        ),
        # The words that are searched: an expression, sampled under the name of its index.
        migrations.RunSQL(
            "ALTER INDEX message_words ALTER COLUMN 1 SET STATISTICS 0", migrations.RunSQL.noop
        ),
    ]
