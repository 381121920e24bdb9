"""Access to projects. Without access, functions raise Http404, as if the project did not exist."""

from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext_lazy as _
from structlog.contextvars import bind_contextvars

from projects.core.database import PreparedObjects
from projects.core.errors import ConflictError
from projects.models import MemberRole, Membership, Project

WRITERS = (MemberRole.OWNER, MemberRole.EDITOR)


class ProjectArchivedError(ConflictError):
    """The project is archived, so nothing in it can be changed."""

    default_code = "project_archived"
    default_message = _("This project is archived and read-only. An owner can unarchive it.")


def projects_for(user, token=None) -> QuerySet[Project]:
    """Return the projects of which `user` is a member. A `token` may limit them to one."""
    projects = Project.objects.visible_to(user)
    if token is not None and token.project_id:
        projects = projects.filter(pk=token.project_id)
    return projects


def membership(user, slug: str, roles=MemberRole.values, token=None) -> Membership:
    """Return the membership of `user` in the project `slug`, with its project.

    Raises Http404 if there is none, if its role is not in `roles`, or if `token` is limited to
    another project. A stranger cannot distinguish these cases.
    """
    [member] = _memberships(user.pk, slug) or [None]
    if member is None or member.role not in roles:
        raise Http404
    if token is not None and token.project_id not in (None, member.project_id):
        raise Http404
    # All further log lines of the request have these fields.
    bind_contextvars(user_id=user.pk, project_id=str(member.project_id))
    return member


@PreparedObjects.of(int, str)
def _memberships(user: int, slug: str) -> QuerySet[Membership]:
    return Membership.objects.select_related("project").filter(user=user, project__slug=slug)


def require_active(project: Project) -> Project:
    """Return the project if it is active. Raises `ProjectArchivedError` if it is archived."""
    if project.archived_at is not None:
        raise ProjectArchivedError
    return project


def project_for_reading(user, slug: str, token=None) -> Project:
    return membership(user, slug, token=token).project


def project_for_writing(user, slug: str, token=None) -> Project:
    """Return the project if the user is an owner or editor. Raises `ProjectArchivedError`."""
    return require_active(membership(user, slug, WRITERS, token).project)


def project_for_owning(user, slug: str, token=None) -> Project:
    """Return the project if the user is an owner, even if it is archived."""
    return membership(user, slug, (MemberRole.OWNER,), token).project


def project_for_managing(user, slug: str, token=None) -> Project:
    """Return the project, for changes by its owners. Raises `ProjectArchivedError`."""
    return require_active(project_for_owning(user, slug, token))


def project_for_removing(user, slug: str, username: str, token=None) -> Project:
    """Return the project if `user` may remove the member `username`: owners remove all members,
    other members only themselves. Raises `ProjectArchivedError`, unless users remove themselves.
    """
    if username == user.get_username():
        return project_for_reading(user, slug, token)
    return project_for_managing(user, slug, token)
