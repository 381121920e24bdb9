"""How people come into a project by a link: the one path behind pages and API."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.models import Invitation, Membership, Project, SpentInvitation, Standing
from projects.signals import invited, member_joined

USUAL_LIFETIME, LONGEST_LIFETIME = timedelta(days=7), timedelta(days=365)
# For so long a link that is over says so; then there is none.
KEPT = timedelta(days=90)
# In a browser's session: by which link somebody came, until they are in.
_IN_HAND = "invitation"
WHY_NOT = {
    Standing.EXPIRED: _("This invitation has expired."),
    Standing.USED_UP: _("This invitation is used up: as many came in by it as may."),
    Standing.REVOKED: _("This invitation was taken back."),
}


class NotAdmitted(Exception):
    """The link lets this person in no more; the text says why."""


@transaction.atomic
def invite(project: Project, by: Any, **fields: Any) -> tuple[Invitation, str]:
    """A new invitation, and the secret of its link, which is told this once."""
    made, secret = Invitation.issue(project, created_by=by, **fields)
    invited.send(sender=Invitation, invitation=made, by=by)
    return made, secret


@transaction.atomic
def admit(invitation: Invitation, user) -> Membership:
    """Makes `user` a member by the link, which counts as one use; a member stays what they are,
    and uses nothing up. Raises NotAdmitted.
    """
    # Whoever comes at the same time waits here.
    link = Invitation.objects.select_for_update(no_key=True).filter(pk=invitation.pk).first()
    if link is None:
        raise NotAdmitted(WHY_NOT[Standing.REVOKED])
    there = Membership.objects.filter(project=link.project_id, user=user).first()
    if there is not None:
        return there
    if link.state != Standing.OPEN:
        raise NotAdmitted(WHY_NOT[link.state])
    if link.spent.filter(user=user).exists():
        raise NotAdmitted(_("You came in by this invitation before, and it takes nobody twice."))
    Invitation.objects.filter(pk=link.pk).update(uses=F("uses") + 1)
    SpentInvitation.objects.create(project_id=link.project_id, invitation=link, user=user)
    member = Membership.objects.create(project_id=link.project_id, user=user, role=link.role)
    member_joined.send(sender=Membership, member=member)
    return member


def revoke(invitation: Invitation) -> None:
    """It lets nobody in from now on; who came by it stays."""
    Invitation.objects.standing().filter(pk=invitation.pk).update(revoked_at=Now())


def shut_out(project_id: UUID, user) -> None:
    """Who is removed from a project comes back by none of its links, and those that they made
    themselves let nobody in.
    """
    standing = Invitation.objects.standing().filter(project=project_id)
    take_back(project_id, user)
    SpentInvitation.objects.bulk_create(
        [SpentInvitation(project_id=project_id, invitation=one, user=user) for one in standing],
        ignore_conflicts=True,
    )


def take_back(project_id: UUID, user) -> None:
    """Revokes what `user`, who owns the project no more, made."""
    mine = Invitation.objects.standing().filter(project=project_id, created_by=user)
    mine.update(revoked_at=Now())


def take_in_hand(request: HttpRequest, invitation: Invitation) -> None:
    """Remembers for this browser by which link it came, so that the link need not be shown."""
    request.session[_IN_HAND] = str(invitation.pk)


def in_hand(request: HttpRequest) -> Invitation | None:
    """The invitation that this browser came by, in whatever standing."""
    pk = request.session.get(_IN_HAND)
    if pk is None:
        return None
    return Invitation.objects.select_related("project", "created_by").filter(pk=pk).first()


def let_go(request: HttpRequest) -> None:
    request.session.pop(_IN_HAND, None)


def clear() -> int:
    """Removes those that have been over for long; returns how many."""
    before = timezone.now() - KEPT
    over = Invitation.objects.filter(expires_at__lt=before) | Invitation.objects.filter(
        revoked_at__lt=before
    )
    return over.delete()[1].get("projects.Invitation", 0)
