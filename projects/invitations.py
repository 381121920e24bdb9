"""Invitations by link and by username: create, use and revoke them, for pages and API."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.core.errors import ConflictError, InvalidInputError
from projects.models import Invitation, InvitationStatus, Membership, Project, SpentInvitation
from projects.permissions import ProjectArchivedError
from projects.signals import invitation_created, member_joined

DEFAULT_LIFETIME, MAX_LIFETIME = timedelta(days=7), timedelta(days=365)
# How long a user can accept an invitation by username.
PERSONAL_LIFETIME = timedelta(days=30)
# How long an expired or revoked link still shows the reason. After this time, it is unknown.
RETENTION = timedelta(days=90)
# The key in the browser session of the link that the browser opened, until the user is a member.
SESSION_KEY = "invitation"
CLOSED_REASONS = {
    InvitationStatus.EXPIRED: _("This invitation has expired."),
    InvitationStatus.USED_UP: _("This invitation has been used up."),
    InvitationStatus.REVOKED: _("This invitation was revoked."),
}


class AlreadyMemberError(InvalidInputError):
    """The invited user is already a member of the project."""

    default_message = _("This person is already a member.")


class NotAdmittedError(ConflictError):
    """This user cannot use the link. The message is the reason."""


@transaction.atomic
def invite(project: Project, by: Any, **fields: Any) -> tuple[Invitation, str]:
    """Create an invitation. Return it and the secret of its link, which cannot be read later."""
    invitation, secret = Invitation.issue(project, created_by=by, **fields)
    invitation_created.send(sender=Invitation, invitation=invitation, by=by)
    return invitation, secret


@transaction.atomic
def invite_user(project: Project, username: str, role: str, by: Any) -> Invitation:
    """Invite the user named `username`, who can accept or decline. It replaces an earlier
    invitation. As at sign-in, the case of the name does not matter.

    A username without an account is treated in the same way, so that accounts cannot be discovered.
    Raises `AlreadyMemberError`.
    """
    users = get_user_model().objects.filter(username__iexact=username)
    found = [user for user in users if user.get_username() == username] or [*users]
    user = found[0] if len(found) == 1 else None
    if user is not None and project.memberships.filter(user=user).exists():
        raise AlreadyMemberError(field="username")
    earlier = project.invitations.unrevoked().filter(username__iexact=username)
    earlier.update(revoked_at=Now())
    expires_at = timezone.now() + PERSONAL_LIFETIME
    fields = {"user": user, "username": username, "role": role, "expires_at": expires_at}
    return invite(project, by, max_uses=1, **fields)[0]


@transaction.atomic
def admit(invitation: Invitation, user) -> Membership:
    """Make `user` a member and count one use of the invitation. Raises `NotAdmittedError`.

    An existing member keeps their role, and no use is counted.
    """
    # Locked, so that concurrent uses of the link are counted one by one.
    link = Invitation.objects.select_for_update(no_key=True).filter(pk=invitation.pk).first()
    if link is None or (link.username is not None and link.user_id != user.pk):
        raise NotAdmittedError(CLOSED_REASONS[InvitationStatus.REVOKED])
    existing = Membership.objects.filter(project=link.project_id, user=user).first()
    if existing is not None:
        return existing
    if link.project.is_archived:
        raise ProjectArchivedError
    if link.state != InvitationStatus.OPEN:
        raise NotAdmittedError(CLOSED_REASONS[link.state])
    if link.spent.filter(user=user).exists():
        raise NotAdmittedError(_("You have already used this invitation."))
    # Another invitation to this project can be accepted by the same user at the same time.
    member, is_new = Membership.objects.get_or_create(
        project_id=link.project_id, user=user, defaults={"role": link.role}
    )
    if not is_new:
        return member
    Invitation.objects.filter(pk=link.pk).update(uses=F("uses") + 1)
    SpentInvitation.objects.create(project_id=link.project_id, invitation=link, user=user)
    member_joined.send(sender=Membership, member=member)
    return member


def closed_reason(invitation: Invitation) -> str:
    """Return why the invitation cannot be used now; "" if it can."""
    if invitation.state == InvitationStatus.OPEN and invitation.project.is_archived:
        return str(ProjectArchivedError.default_message)
    return str(CLOSED_REASONS.get(invitation.state, ""))


def link_to(request: HttpRequest, invitation: Invitation, secret: str) -> str:
    """Return the absolute URL of the link."""
    path = reverse("invitation", args=[invitation.project.slug, secret])
    return request.build_absolute_uri(path)


def revoke(invitation: Invitation) -> None:
    """Revoke the invitation. Members who joined by it stay."""
    Invitation.objects.unrevoked().filter(pk=invitation.pk).update(revoked_at=Now())


def exclude_user(project_id: UUID, user) -> None:
    """Prevent a removed user from using existing links, and revoke those that they created."""
    links = Invitation.objects.unrevoked().filter(project=project_id)
    revoke_created_by(user, project_id)
    revoke_sent_to(user, project_id)
    SpentInvitation.objects.bulk_create(
        [SpentInvitation(project_id=project_id, invitation=link, user=user) for link in links],
        ignore_conflicts=True,
    )


def revoke_created_by(user, project_id: UUID | None = None) -> None:
    """Revoke the invitations that `user` created, in one project or in all projects."""
    links = Invitation.objects.unrevoked().filter(created_by=user)
    if project_id is not None:
        links = links.filter(project=project_id)
    links.update(revoked_at=Now())


def revoke_sent_to(user, project_id: UUID) -> None:
    """Revoke the invitations to a project that `user` received by username."""
    sent = Invitation.objects.unrevoked().filter(project=project_id, user=user)
    sent.update(revoked_at=Now())


def set_pending_invitation(request: HttpRequest, invitation: Invitation) -> None:
    """Store the invitation in the browser session, so that later URLs do not contain the secret."""
    request.session[SESSION_KEY] = str(invitation.pk)


def pending_invitation(request: HttpRequest) -> Invitation | None:
    """Return the invitation that this browser opened, in any state; None if there is none."""
    pk = request.session.get(SESSION_KEY)
    if pk is None:
        return None
    return Invitation.objects.select_related("project", "created_by").filter(pk=pk).first()


def clear_pending_invitation(request: HttpRequest) -> None:
    request.session.pop(SESSION_KEY, None)


def delete_expired() -> int:
    """Delete the invitations that were closed more than `RETENTION` ago. Return their number."""
    before = timezone.now() - RETENTION
    closed = Invitation.objects.filter(Q(expires_at__lt=before) | Q(revoked_at__lt=before))
    return closed.delete()[1].get("projects.Invitation", 0)
