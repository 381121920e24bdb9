"""Give facts that the creators of private chats have rejected a reason, as to facts rejected now.

The reason is why only these creators see a rejected fact.
"""

from django.db import migrations

# The sources of a fact belong to its current version.
SET_REASON = """
UPDATE memory_fact f SET waits_because = 'private'
WHERE f.state = 'hidden' AND f.waits_because = '' AND NOT f.by_hand
    AND EXISTS (
        SELECT FROM memory_activity a
        JOIN memory_factsource s ON s.project_id = a.project_id AND s.fact_id = a.fact_id
        JOIN chat_session c ON c.id = s.session_id AND c.creator_id = a.by_id
        WHERE a.project_id = f.project_id AND a.fact_id = COALESCE(f.earlier_of_id, f.id)
            AND a.verb = 'rejected'
    )
    AND NOT EXISTS (
        SELECT FROM memory_activity a
        WHERE a.project_id = f.project_id AND a.fact_id = COALESCE(f.earlier_of_id, f.id)
            AND a.verb = 'shown'
    )
    AND NOT EXISTS (
        SELECT FROM memory_factsource s JOIN chat_session c ON c.id = s.session_id
        WHERE s.project_id = f.project_id AND s.fact_id = COALESCE(f.earlier_of_id, f.id)
            AND c.visibility <> 'private'
    )
"""


def set_reason(apps, schema_editor):
    schema_editor.execute(SET_REASON)


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0023_redacted_phrases'),
    ]

    operations = [
        migrations.RunPython(set_reason, migrations.RunPython.noop, elidable=True),
    ]
