"""Add acts to the choices in the state of migrations, and index the acts on facts."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

VERBS = [('summarised', 'summarised a chat'), ('rolled_up', 'merged memories into'), ('rewritten', 'rewrote'), ('dissolved', 'removed because all sources were deleted'), ('faded', 'stopped sending memories (no room)'), ('returned', 'resumed sending memories'), ('failed', 'failed'), ('proposed', 'sent for review'), ('approved', 'approved'), ('checked', 'confirmed'), ('rejected', 'rejected'), ('edited', 'edited'), ('pinned', 'pinned'), ('unpinned', 'unpinned'), ('hidden', 'hid'), ('shown', 'showed again'), ('deleted', 'deleted'), ('chat_closed', 'closed'), ('archived', 'archived'), ('unarchived', 'unarchived'), ('redacted', 'removed text from'), ('asked_anew', 'requested a rewrite of'), ('forgotten', 'forgot'), ('block_kept', 'changed pinned text'), ('block_gone', 'deleted pinned text'), ('read', 'opened the private text of'), ('recorded', 'added'), ('closed', 'ended'), ('member_added', 'added a member'), ('member_gone', 'removed a member'), ('role_changed', 'changed a role'), ('invited', 'created an invitation'), ('imported', 'imported chats'), ('joined', 'joined by invitation')]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0014_webhook_events")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="activity",
                    name="verb",
                    field=models.CharField(choices=VERBS, max_length=12),
                ),
            ]
        ),
        AddIndexConcurrently(
            "activity",
            models.Index(
                fields=["project", "fact_id"],
                name="activity_of_fact",
                condition=models.Q(fact_id__isnull=False),
            ),
        ),
    ]
