"""Invitations by link or by name, and the users who can no longer use them."""

import hashlib
import secrets
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from projects.core.models import new_id
from projects.models.members import MemberRole, Membership
from projects.models.projects import Project

SECRET_BYTES = 24
MAX_USES = 10_000


class InvitationStatus(models.TextChoices):
    """The state of a link: open, or the reason why it is closed."""

    OPEN = "open", _("active")
    EXPIRED = "expired", _("expired")
    USED_UP = "used_up", _("used up")
    REVOKED = "revoked", _("revoked")


def secret_digest(secret: str) -> str:
    """Return the stored digest of a secret, which is long and random and so needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _creator_is_owner() -> Exists:
    owners = Membership.objects.owners()
    return Exists(owners.filter(project=OuterRef("project"), user=OuterRef("created_by")))


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def unrevoked(self) -> "InvitationQuerySet":
        """Return the links that nobody has revoked."""
        return self.filter(revoked_at=None)

    def with_creator_state(self) -> "InvitationQuerySet":
        """Load `creator_is_owner` with each link, without a query for each."""
        return self.annotate(creator_is_owner=_creator_is_owner())

    def for_user(self, user) -> "InvitationQuerySet":
        """Return the open invitations that `user` was sent by name."""
        return self.open().filter(user=user).select_related("project", "created_by")

    def listed(self) -> "InvitationQuerySet":
        """Return the unrevoked invitations with everything that a list of them shows."""
        return self.unrevoked().with_creator_state().select_related("created_by")

    def open(self) -> "InvitationQuerySet":
        """Return the links that can be used now, by the database's clock."""
        unused = Q(max_uses=None) | Q(uses__lt=F("max_uses"))
        usable = self.unrevoked().filter(unused, expires_at__gt=Now())
        return usable.filter(_creator_is_owner())

    def for_link(self, slug: str, secret: str) -> "InvitationQuerySet":
        """Return the invitation of a link, in any state."""
        return self.filter(project__slug=slug, digest=secret_digest(secret))


class Invitation(models.Model):
    """A link that makes its user a member of a project, or an invitation of one user by name.

    Only a digest of a link's secret is stored; nobody has the secret of an invitation by name. Its
    `user` is null if no account has the `username`, so that owners cannot find out which names
    exist. Nobody can accept such an invitation, not even with an account of that name that is
    created later.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="invitations", db_index=False
    )
    digest = models.CharField(max_length=64, editable=False)
    username = models.CharField(max_length=150, null=True, blank=True, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    role = models.CharField(max_length=10, choices=MemberRole.choices, default=MemberRole.EDITOR)
    expires_at = models.DateTimeField()
    max_uses = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The number of people who may use the link. Empty: no limit.",
    )
    uses = models.PositiveIntegerField(default=0, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "digest"], name="one_invitation_a_link"),
            models.CheckConstraint(
                condition=Q(role__in=MemberRole.values), name="invitation_role_is_known"
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
        """Return a new invitation and the secret of its link, which is available only now."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        return cls.objects.create(project=project, digest=secret_digest(secret), **fields), secret

    @cached_property
    def creator_is_owner(self) -> bool:
        """Return whether the creator still owns the project and has an active account."""
        owners = Membership.objects.owners().filter(project=self.project_id)
        return owners.filter(user=self.created_by_id).exists()

    @property
    def state(self) -> InvitationStatus:
        if self.revoked_at is not None or not self.creator_is_owner:
            return InvitationStatus.REVOKED
        if self.expires_at <= timezone.now():
            return InvitationStatus.EXPIRED
        if self.max_uses is not None and self.uses >= self.max_uses:
            return InvitationStatus.USED_UP
        return InvitationStatus.OPEN


class SpentInvitation(models.Model):
    """A user who can no longer use a link: they joined by it, or were removed from the project
    while it was open.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, related_name="spent")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("used invitation")
        verbose_name_plural = _("used invitations")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "invitation", "user"], name="spent_once_a_person"
            )
        ]

    def __str__(self) -> str:
        return f"{self.invitation} for {self.user}"
