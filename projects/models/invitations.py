"""Invitations by link or by username, and the users who can no longer use them."""

import hashlib
import secrets
from typing import Any

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from projects.core.models import IdModel
from projects.models.keys import optional_user_key, parent_key, project_key, user_key
from projects.models.members import MemberRole, Membership
from projects.models.projects import Project

SECRET_BYTES = 24
MAX_USES = 10_000


class InvitationStatus(models.TextChoices):
    """The state of an invitation: open, or the reason why it is closed."""

    OPEN = "open", _("active")
    EXPIRED = "expired", _("expired")
    USED_UP = "used_up", _("used up")
    REVOKED = "revoked", _("revoked")


def secret_digest(secret: str) -> str:
    """Return the digest of a secret to store. It is long and random, so it needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _creator_is_owner() -> Exists:
    owners = Membership.objects.owners()
    return Exists(owners.filter(project=OuterRef("project"), user=OuterRef("created_by")))


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def unrevoked(self) -> "InvitationQuerySet":
        """Return the invitations that have not been revoked."""
        return self.filter(revoked_at=None)

    def with_creator_state(self) -> "InvitationQuerySet":
        """Annotate `creator_is_owner`, so that it takes no query for each invitation."""
        return self.annotate(creator_is_owner=_creator_is_owner())

    def for_user(self, user) -> "InvitationQuerySet":
        """Return the open invitations that `user` has received by username."""
        return self.open().filter(user=user).select_related("project", "created_by")

    def joined(self) -> "InvitationQuerySet":
        """Return the invitations by username whose user is a member of the project."""
        members = Membership.objects.filter(project=OuterRef("project"), user=OuterRef("user"))
        return self.filter(Exists(members))

    def listed(self) -> "InvitationQuerySet":
        """Return the unrevoked invitations with everything that a list shows."""
        return self.unrevoked().with_creator_state().select_related("created_by")

    def open(self) -> "InvitationQuerySet":
        """Return the invitations that can be used now, by the database clock."""
        unused = Q(max_uses=None) | Q(uses__lt=F("max_uses"))
        usable = self.unrevoked().filter(unused, expires_at__gt=Now())
        return usable.filter(_creator_is_owner())

    def for_link(self, slug: str, secret: str) -> "InvitationQuerySet":
        """Return the invitation with this link, in any state."""
        return self.filter(project__slug=slug, digest=secret_digest(secret))


class Invitation(IdModel):
    """A link with which people join a project, or an invitation of one user by username.

    Of a link, only a digest of the secret is stored. The secret of an invitation by username is
    given to nobody. If no account has the `username`, the invitation is created without `user`, so
    that owners cannot discover which accounts exist. It cannot be accepted, not even by an account
    that is created later.
    """

    project = project_key("invitations", db_index=False)
    digest = models.CharField(_("digest"), max_length=64, editable=False)
    username = models.CharField(
        _("username"), max_length=150, null=True, blank=True, editable=False
    )
    user = optional_user_key(editable=False)
    role = models.CharField(
        _("role"), max_length=10, choices=MemberRole.choices, default=MemberRole.EDITOR
    )
    expires_at = models.DateTimeField(_("expires at"))
    max_uses = models.PositiveIntegerField(
        _("maximum uses"),
        null=True,
        blank=True,
        help_text=_("The number of people who may use the link. Empty: no limit."),
    )
    uses = models.PositiveIntegerField(_("uses"), default=0, editable=False)
    created_by = optional_user_key(_("created by"), blank=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True, editable=False)

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
        """Create an invitation. Return it and its link's secret, which cannot be read later."""
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


class SpentInvitation(IdModel):
    """A user who can no longer use a link, because the user joined by it or was removed from the
    project while it was open.
    """

    project = project_key(db_index=False)
    invitation = parent_key(Invitation, _("invitation"), "spent")
    user = user_key()
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

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
