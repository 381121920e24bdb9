from django.db import migrations


def book_earlier_replies(apps, schema_editor):
    """Insert the replies of the last 400 days, under the ids of their messages."""
    schema_editor.execute(
        """
        INSERT INTO memory_call (id, project_id, user_id, kind, model, session_id, message_id,
            started_at, input_tokens, cached_tokens, output_tokens, cost, outcome)
        SELECT reply.id, reply.project_id, question.author_id, 'reply', reply.model,
            reply.session_id, reply.id, reply.created_at, coalesce(reply.input_tokens, 0), 0,
            coalesce(reply.output_tokens, 0), reply.cost, 'answered'
        FROM chat_message reply
        LEFT JOIN chat_message question
            ON question.project_id = reply.project_id AND question.id = reply.parent_id
        WHERE reply.role = 'assistant' AND reply.model <> '' AND reply.input_tokens IS NOT NULL
            AND reply.created_at > statement_timestamp() - interval '400 days'
        ON CONFLICT DO NOTHING
        """
    )


class Migration(migrations.Migration):
    dependencies = [("chat", "0013_costs")]

    operations = [
        migrations.RunPython(book_earlier_replies, migrations.RunPython.noop, elidable=True),
    ]
