"""What was done under an idempotency key."""

from django.conf import settings
from django.db import models

from projects.identifiers import new_id
from projects.models.projects import Project


class IdempotencyKey(models.Model):
    """That a request was carried out, and what it made. Ids alone: no text, neither of the request
    nor of the answer, and no way back from the digests to what they were made of.

    Keys belong to a user and to the project that their token opens: null for all of the user's.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, help_text="A keyed digest of the key.")
    request = models.CharField(
        max_length=64, help_text="A keyed digest of the method, the path and the body."
    )
    status = models.PositiveSmallIntegerField(help_text="Of the first answer.")
    made = models.JSONField(default=dict, help_text="The ids of what was made.")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user", "key"],
                name="one_use_a_key",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.status} of {self.user}"
