"""Creation and deletion of projects, and changes of their members, for pages, API and commands."""

import logging
import random
import time
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from projects.core.errors import InvalidInputError, UnavailableError
from projects.models import MemberRole, Membership, Project
from projects.signals import member_added, member_removed, project_archived, role_changed

SLUG_SUFFIX_CHARS = 5
# Without letters and digits that are easily confused.
SLUG_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"

log = logging.getLogger(__name__)

# Lock not available, and deadlock detected.
LOCK_CONFLICTS = ("55P03", "40P01")
# The time for which a deletion is tried again while other processes hold rows of the project.
DELETION_TIMEOUT_S = 30.0
DELETION_PAUSE_S = (0.01, 0.1)


class ProjectBusyError(UnavailableError):
    """Other processes held rows of the project during all attempts to delete it."""

    default_message = _("The project is busy. Try again in a moment.")
    retry_after_s = 5


class LastOwnerError(InvalidInputError):
    """The change would leave the project without an owner."""

    default_message = _("A project needs at least one owner.")


def unused_slug(name: str) -> str:
    """Return a slug made of `name` that no project has yet.

    The slug ends in random characters and not in the next number, so that it does not reveal how
    many projects have the name.
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
def set_archived(project: Project, archived: bool, by: Any = None) -> None:
    """Archive `project`, or make it active again. An archived project keeps the first time."""
    if archived != project.is_archived:
        project.archived_at = timezone.now() if archived else None
        project.save(update_fields=["archived_at"])
        project_archived.send(sender=Project, project=project, by=by)


def delete_project(project: Project) -> None:
    """Delete `project` and everything in it, for good. Raises `ProjectBusyError`.

    The project is locked first, which waits for everything that adds rows. Then all its rows are
    locked without waiting, because a process that has locked one of them, such as a memory cycle,
    may wait for the project. Such an attempt releases its locks and is repeated, so there is no
    deadlock.
    """
    deadline = time.monotonic() + DELETION_TIMEOUT_S
    while True:
        try:
            with transaction.atomic():
                _lock_with_rows(project)
                project_id = project.pk
                project.delete()
                _delete_unconstrained(project_id)
            return
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") not in LOCK_CONFLICTS:
                raise
            log.info("project_deletion_retried project=%s", project.pk)
            if time.monotonic() > deadline:
                raise ProjectBusyError from error
        # Not always the same pause, so that two deletions get out of each other's way.
        time.sleep(random.uniform(*DELETION_PAUSE_S))


def _lock_with_rows(project: Project) -> None:
    """Lock the project and then all its rows. Raises OperationalError if one of them is locked."""
    Project.objects.select_for_update().get(pk=project.pk)
    with connection.cursor() as cursor:
        for relation in _relations():
            table = connection.ops.quote_name(relation.related_model._meta.db_table)
            # Counted in the database: a project may have a million rows.
            query = f"SELECT 1 FROM {table} WHERE project_id = %s FOR UPDATE NOWAIT"
            cursor.execute(f"SELECT count(*) FROM ({query}) rows", [project.pk])


def _delete_unconstrained(project_id: UUID) -> None:
    """Delete the rows that triggers added while the project was deleted: states of its entries."""
    for relation in _relations():
        if not getattr(relation.field, "db_constraint", True):
            rows = relation.related_model._base_manager.filter(project=project_id)
            rows._raw_delete(rows.db)


def _relations() -> list[ForeignObjectRel]:
    fields = Project._meta.get_fields(include_hidden=True)
    return [field for field in fields if isinstance(field, ForeignObjectRel)]


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
