from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("chat", "0017_saved_prompts")]

    operations = [
        AddIndexConcurrently(
            "Call", models.Index(fields=["user", "started_at"], name="call_of_user")
        ),
        AddIndexConcurrently(
            "Call",
            models.Index(
                condition=models.Q(("token_id__isnull", False)),
                fields=["token_id", "started_at"],
                name="call_of_token",
            ),
        ),
        AddIndexConcurrently(
            "Call",
            models.Index(
                condition=models.Q(("outcome", "")),
                fields=["reserved_until"],
                name="call_reserved",
            ),
        ),
    ]
