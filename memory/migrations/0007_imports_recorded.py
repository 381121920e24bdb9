from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0006_who_belongs'),
    ]

    operations = [
        migrations.AlterField(
            model_name='activity',
            name='verb',
            field=models.CharField(choices=[('summarised', 'summarised a conversation'), ('rolled_up', 'rolled up a period'), ('rewritten', 'wrote anew'), ('dissolved', 'removed, as nothing is left of its sources'), ('faded', 'faded'), ('returned', 'brought back into the budget'), ('failed', 'failed'), ('proposed', 'proposed'), ('approved', 'approved'), ('rejected', 'rejected'), ('edited', 'edited'), ('pinned', 'pinned'), ('unpinned', 'unpinned'), ('hidden', 'hid'), ('shown', 'took in again'), ('redacted', 'redacted'), ('asked_anew', 'asked to have written anew'), ('forgotten', 'forgot'), ('block_kept', 'wrote a block'), ('block_gone', 'deleted a block'), ('read', 'opened the private text of'), ('recorded', 'recorded'), ('closed', 'closed'), ('member_added', 'added a member'), ('member_gone', 'removed a member'), ('role_changed', 'gave another role'), ('invited', 'made an invitation'), ('imported', 'imported chats'), ('joined', 'came in by an invitation')], max_length=12),
        ),
    ]
