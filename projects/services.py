"""Create and delete projects, and change their members, for pages, API and commands."""

import logging
import random
import time
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from projects.core.database import fetch, is_lock_conflict
from projects.core.errors import InvalidInputError, UnavailableError
from projects.models import MemberRole, Membership, Project
from projects.signals import member_added, member_removed, project_archived, role_changed

SLUG_SUFFIX_CHARS = 5
# The characters of random slugs. Letters and digits that are easily confused are left out.
SLUG_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"

log = logging.getLogger(__name__)

# How long a deletion is retried while other processes have locked rows of the project.
DELETION_TIMEOUT_S = 30.0
DELETION_PAUSE_S = (0.01, 0.1)


class ProjectBusyError(UnavailableError):
    """Other processes had locked rows of the project at every attempt to delete it."""

    default_message = _("The project is busy. Try again in a moment.")
    retry_after_s = 5


class LastOwnerError(InvalidInputError):
    """The change would leave the project without an owner."""

    default_message = _("A project needs at least one owner.")


class SlugTakenError(InvalidInputError):
    """A concurrent request has created a project with this slug."""

    default_message = "This slug is not available."


def unused_slug(name: str) -> str:
    """Return an unused slug that is generated from `name`.

    If the slug is taken, it gets random characters at its end. A number would reveal how many
    projects have this name.
    """
    slug = stem = slugify(name)[:50] or "project"
    while Project.objects.filter(slug=slug).exists():
        slug = f"{stem}-{get_random_string(SLUG_SUFFIX_CHARS, SLUG_ALPHABET)}"
    return slug


@transaction.atomic
def create_project(owner, **fields) -> Project:
    """Create a project of `owner`. `fields` are fields of the model; the slug is optional.

    Raises `SlugTakenError`.
    """
    slug = fields.pop("slug", "")
    project = _insert_project(slug or unused_slug(fields["name"]), fields)
    if project is None and not slug:
        # A concurrent request, such as a second click, has just taken the slug.
        project = _insert_project(unused_slug(fields["name"]), fields)
    if project is None:
        raise SlugTakenError(field="slug")
    Membership.objects.create(project=project, user=owner, role=MemberRole.OWNER)
    return project


def _insert_project(slug: str, fields: dict[str, Any]) -> Project | None:
    """Return the new project, or None if a project has this slug."""
    try:
        with transaction.atomic():
            return Project.objects.create(slug=slug, **fields)
    except IntegrityError:
        if Project.objects.filter(slug=slug).exists():
            return None
        raise


@transaction.atomic
def set_archived(project: Project, archived: bool, by: Any = None) -> None:
    """Archive `project`, or make it active again. Do nothing if it is already in this state."""
    if archived != project.is_archived:
        project.archived_at = timezone.now() if archived else None
        project.save(update_fields=["archived_at"])
        project_archived.send(sender=Project, project=project, by=by)


def delete_project(project: Project) -> None:
    """Permanently delete `project` and everything in it. Raises `ProjectBusyError`.

    First the project is locked, which waits for all processes that add rows. Then all its rows are
    locked without waiting. A process that has locked one of the rows, such as a memory cycle, may
    itself wait for the project. In this case, the attempt releases its locks and is repeated, so
    that there is no deadlock.
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
            if not is_lock_conflict(error):
                raise
            log.info("project_deletion_retried project=%s", project.pk)
            if time.monotonic() > deadline:
                raise ProjectBusyError from error
        # A random pause, so that two concurrent deletions do not collide every time.
        time.sleep(random.uniform(*DELETION_PAUSE_S))


def _lock_with_rows(project: Project) -> None:
    """Lock the project and then all its rows. Raises OperationalError if one is locked."""
    Project.objects.select_for_update().get(pk=project.pk)
    for relation in _relations():
        table = connection.ops.quote_name(relation.related_model._meta.db_table)
        # Lock in the database without reading the rows: a project may have a million.
        query = f"SELECT 1 FROM {table} WHERE project_id = %s FOR UPDATE NOWAIT"
        fetch(f"SELECT count(*) FROM ({query}) rows", [project.pk])


def _delete_unconstrained(project_id: UUID) -> None:
    """Delete the rows that triggers have added during the deletion: states of entries."""
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
    """Return the membership of `user` and whether it is new. An existing member keeps their role.

    Used by commands of administrators. Pages and API send an invitation instead, which the user
    must accept.
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
    # A concurrent request, such as a second click, may have removed the member.
    if member.delete()[0]:
        member_removed.send(sender=Membership, member=member, by=by)


def check_other_owner(member: Membership, field: str = "") -> None:
    """Raise `LastOwnerError` if `member` is the only owner, not counting deactivated accounts.

    Locks the memberships of the owners.
    """
    owners = Membership.objects.filter(project=member.project_id, role=MemberRole.OWNER)
    locked = owners.select_related("user").order_by("pk").select_for_update(of=("self",))
    others = {owner.pk: owner.user.is_active for owner in locked}
    if others.pop(member.pk, None) is not None and not any(others.values()):
        raise LastOwnerError(field=field)
