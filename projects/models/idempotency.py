"""Requests with an idempotency key and their results."""

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from projects.core.models import IdModel
from projects.models.keys import optional_parent_key, user_key
from projects.models.projects import Project

RETENTION = timedelta(hours=24)


class IdempotencyKeyQuerySet(models.QuerySet["IdempotencyKey"]):
    def expired(self) -> "IdempotencyKeyQuerySet":
        """Return the keys older than `RETENTION`: a repeated request is executed again."""
        return self.filter(created_at__lt=Now() - RETENTION)


class IdempotencyKey(IdModel):
    """A request that was executed, and the ids that it created.

    It contains no text of the request or response, and the digests cannot be reversed. A key
    belongs to a user and, if the token is limited to a project, also to that project.
    """

    project = optional_parent_key(Project, _("project"), db_index=False)
    user = user_key()
    key = models.CharField(_("key"), max_length=64, help_text="A keyed digest of the key.")
    request = models.CharField(
        _("request"),
        max_length=64,
        help_text="A keyed digest of the method, the path and the body.",
    )
    status = models.PositiveSmallIntegerField(
        _("HTTP status"), help_text=_("The status of the first response.")
    )
    made = models.JSONField(
        _("created objects"), default=dict, help_text=_("The ids of the created objects.")
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True, db_index=True)

    objects = IdempotencyKeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user", "key"], name="one_use_a_key", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.status} of {self.user}"
