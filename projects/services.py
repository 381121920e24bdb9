"""Creation and deletion of projects, and changes of their members, for pages, API and commands."""

from typing import Any

from django.db import transaction
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from projects.core.errors import InvalidInputError
from projects.models import MemberRole, Membership, Project
from projects.signals import member_added, member_removed, role_changed

SLUG_SUFFIX_CHARS = 5
# Without letters and digits that are easily confused.
SLUG_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


class LastOwnerError(InvalidInputError):
    """The change would leave the project without an owner."""

    default_message = _("A project keeps at least one owner.")


def unused_slug(name: str) -> str:
    """Return a slug made of `name` that no project has yet.

    A random end, instead of the next number, does not show how many projects have the name.
    """
    slug = stem = slugify(name)[:50] or "project"
    while Project.objects.filter(slug=slug).exists():
        slug = f"{stem}-{get_random_string(SLUG_SUFFIX_CHARS, SLUG_ALPHABET)}"
    return slug


@transaction.atomic
def create_project(owner, **fields) -> Project:
    """Create a project owned by `owner`. `fields` are the model's; the slug is optional."""
    fields["slug"] = fields.get("slug") or unused_slug(fields["name"])
    project = Project.objects.create(**fields)
    Membership.objects.create(project=project, user=owner, role=MemberRole.OWNER)
    return project


@transaction.atomic
def delete_project(project: Project) -> None:
    """Delete `project` and everything in it, for good.

    The locks are taken in the same order as by importers: first the project, in a mode that lets
    its writers finish, then its sessions. So there is no deadlock, and no row is added or left.
    """
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    list(project.sessions.select_for_update().order_by("pk").values_list("pk"))
    Project.objects.select_for_update().get(pk=project.pk).delete()


@transaction.atomic
def add_member(
    project: Project, user: Any, role: str = MemberRole.EDITOR, by: Any = None
) -> tuple[Membership, bool]:
    """Return the membership of `user`, and whether it is new. A member keeps their role.

    For the operator's commands: pages and API send an invitation, which the user accepts.
    """
    member, created = Membership.objects.get_or_create(
        project=project, user=user, defaults={"role": role}
    )
    if created:
        member_added.send(sender=Membership, member=member, by=by)
    return member, created


@transaction.atomic
def change_role(member: Membership, role: str, by: Any = None) -> None:
    """Give `member` the `role`. Raises `LastOwnerError`."""
    if role != MemberRole.OWNER:
        check_other_owner(member, field="role")
    previous, member.role = member.role, role
    member.save(update_fields=["role"])
    if previous != role:
        role_changed.send(sender=Membership, member=member, by=by, was=previous)


@transaction.atomic
def remove_member(member: Membership, by: Any = None) -> None:
    """Remove `member`. Raises `LastOwnerError`."""
    check_other_owner(member)
    member.delete()
    member_removed.send(sender=Membership, member=member, by=by)


def check_other_owner(member: Membership, field: str = "") -> None:
    """Raise `LastOwnerError` if nobody else owns the project. The owners stay locked."""
    owners = Membership.objects.filter(project=member.project_id, role=MemberRole.OWNER)
    if [owner.pk for owner in owners.order_by("pk").select_for_update()] == [member.pk]:
        raise LastOwnerError(field=field)
