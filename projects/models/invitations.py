"""Links by which people come into a project, and for whom they are spent."""

import hashlib
import secrets
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.identifiers import new_id
from projects.models.members import Role
from projects.models.projects import Project

SECRET_BYTES = 24
MOST_USES = 10_000


class Standing(models.TextChoices):
    """Whether a link still lets anybody in, and why not."""

    OPEN = "open", _("open")
    EXPIRED = "expired", _("expired")
    USED_UP = "used_up", _("used up")
    REVOKED = "revoked", _("revoked")


def digest_of(secret: str) -> str:
    """What is kept of a secret, which is long and random, and so needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def standing(self) -> "InvitationQuerySet":
        """Those that nobody has taken back."""
        return self.filter(revoked_at=None)

    def open(self) -> "InvitationQuerySet":
        """Those that let somebody in now, by the database's clock."""
        unused = Q(max_uses=None) | Q(uses__lt=F("max_uses"))
        return self.standing().filter(unused, expires_at__gt=Now())

    def of(self, slug: str, secret: str) -> "InvitationQuerySet":
        """That of a link, in whatever standing."""
        return self.filter(project__slug=slug, digest=digest_of(secret))


class Invitation(models.Model):
    """A link that makes who opens it a member of a project. Only a digest of it is kept."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="invitations", db_index=False
    )
    digest = models.CharField(max_length=64, editable=False)
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.EDITOR)
    expires_at = models.DateTimeField()
    max_uses = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many it lets in. Empty: all who have it."
    )
    uses = models.PositiveIntegerField(default=0, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "digest"], name="one_invitation_a_link"),
            models.CheckConstraint(
                condition=Q(role__in=Role.values), name="invitation_role_is_known"
            ),
            models.CheckConstraint(
                condition=Q(max_uses=None) | Q(uses__lte=F("max_uses")),
                name="invitation_within_its_uses",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.project}"

    @classmethod
    def issue(cls, project: Project, **fields: Any) -> tuple["Invitation", str]:
        """A new one, and the secret of its link, which is told this once."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        return cls.objects.create(project=project, digest=digest_of(secret), **fields), secret

    @property
    def state(self) -> Standing:
        if self.revoked_at is not None:
            return Standing.REVOKED
        if self.expires_at <= timezone.now():
            return Standing.EXPIRED
        if self.max_uses is not None and self.uses >= self.max_uses:
            return Standing.USED_UP
        return Standing.OPEN


class SpentInvitation(models.Model):
    """That a link lets somebody in no more: they came in by it, or were removed from the project
    while it was open, and do not come back by it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, related_name="spent")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "invitation", "user"], name="spent_once_a_person"
            )
        ]

    def __str__(self) -> str:
        return f"{self.invitation} for {self.user}"
