"""Members of projects, and their roles."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from projects.core.models import IdModel
from projects.models.keys import project_key, user_key


class MemberRole(models.TextChoices):
    OWNER = "owner", _("Owner")
    EDITOR = "editor", _("Editor")
    VIEWER = "viewer", _("Viewer")


class MembershipQuerySet(models.QuerySet["Membership"]):
    def owners(self) -> "MembershipQuerySet":
        """Return the memberships of owners with active accounts."""
        return self.filter(role=MemberRole.OWNER, user__is_active=True)

    def writers(self) -> "MembershipQuerySet":
        """Return the memberships of owners and editors with active accounts."""
        return self.filter(role__in=(MemberRole.OWNER, MemberRole.EDITOR), user__is_active=True)


class Membership(IdModel):
    project = project_key("memberships")
    user = user_key("memberships")
    role = models.CharField(
        _("role"), max_length=10, choices=MemberRole.choices, default=MemberRole.EDITOR
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        verbose_name = _("member")
        verbose_name_plural = _("members")
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_membership_a_user"),
            models.CheckConstraint(
                condition=Q(role__in=MemberRole.values), name="membership_role_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project}"

    @property
    def is_writer(self) -> bool:
        """True if the role permits writing, even in an archived project."""
        return self.role in (MemberRole.OWNER, MemberRole.EDITOR)

    @property
    def may_write(self) -> bool:
        return self.is_writer and not self.project.is_archived
