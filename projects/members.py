"""Who belongs to a project, and the rule that it never loses its last owner."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from projects import invitations
from projects.models import Membership, Project, Role
from projects.signals import member_added, member_removed, role_changed


class LastOwner(Exception):
    """The change would leave the project without an owner."""

    def __init__(self) -> None:
        super().__init__(_("A project keeps at least one owner."))


@transaction.atomic
def add(
    project: Project, user: Any, role: str = Role.EDITOR, by: Any = None
) -> tuple[Membership, bool]:
    """The membership of `user`, and whether it is new: a member stays what they are."""
    member, made = Membership.objects.get_or_create(
        project=project, user=user, defaults={"role": role}
    )
    if made:
        member_added.send(sender=Membership, member=member, by=by)
    return member, made


@transaction.atomic
def change_role(member: Membership, role: str, by: Any = None) -> None:
    """Raises LastOwner."""
    if role != Role.OWNER:
        _keep_an_owner_besides(member)
        invitations.take_back(member.project_id, member.user)
    was, member.role = member.role, role
    member.save(update_fields=["role"])
    if was != role:
        role_changed.send(sender=Membership, member=member, by=by, was=was)


@transaction.atomic
def remove(member: Membership, by: Any = None) -> None:
    """Raises LastOwner."""
    _keep_an_owner_besides(member)
    invitations.shut_out(member.project_id, member.user)
    member.delete()
    member_removed.send(sender=Membership, member=member, by=by)


def _keep_an_owner_besides(member: Membership) -> None:
    """Raises LastOwner when nobody else owns the project. The owners stay locked."""
    owners = Membership.objects.filter(project=member.project_id, role=Role.OWNER).order_by("pk")
    if [owner.pk for owner in owners.select_for_update()] == [member.pk]:
        raise LastOwner
