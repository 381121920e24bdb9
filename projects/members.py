"""Who belongs to a project, and the rule that it never loses its last owner."""

from django.db import transaction
from django.utils.translation import gettext as _

from projects import invitations
from projects.models import Membership, Role


class LastOwner(Exception):
    """The change would leave the project without an owner."""

    def __init__(self) -> None:
        super().__init__(_("A project keeps at least one owner."))


@transaction.atomic
def change_role(member: Membership, role: str) -> None:
    """Raises LastOwner."""
    if role != Role.OWNER:
        _keep_an_owner_besides(member)
        invitations.take_back(member.project_id, member.user)
    member.role = role
    member.save(update_fields=["role"])


@transaction.atomic
def remove(member: Membership) -> None:
    """Raises LastOwner."""
    _keep_an_owner_besides(member)
    invitations.shut_out(member.project_id, member.user)
    member.delete()


def _keep_an_owner_besides(member: Membership) -> None:
    """Raises LastOwner when nobody else owns the project. The owners stay locked."""
    owners = Membership.objects.filter(project=member.project_id, role=Role.OWNER).order_by("pk")
    if [owner.pk for owner in owners.select_for_update()] == [member.pk]:
        raise LastOwner
