from django.db import migrations


class Migration(migrations.Migration):
    """The table of model calls is now one of the app `chat`."""

    dependencies = [
        ("chat", "0013_costs"),
        ("memory", "0015_checks_and_archives"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Call")]),
    ]
