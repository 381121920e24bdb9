"""Who may do what: each function returns the object, or answers 404 as if it were not there."""

from django.db.models import QuerySet
from django.http import Http404
from structlog.contextvars import bind_contextvars

from projects.models import Membership, Project, Role

WRITERS = (Role.OWNER, Role.EDITOR)


def projects_for(user, token=None) -> QuerySet[Project]:
    """The projects that `user` is a member of, or the one of them that `token` opens."""
    projects = Project.objects.visible_to(user)
    if token is not None and token.project_id:
        projects = projects.filter(pk=token.project_id)
    return projects


def membership(user, slug: str, roles=Role.values, token=None) -> Membership:
    """The membership of `user` in the project `slug`, with its project.

    Raises Http404 when there is none, its role is not among `roles`, or `token` is for another
    project: a stranger cannot tell the cases apart.
    """
    found = (
        Membership.objects.select_related("project")
        .filter(project__slug=slug, user=user, role__in=roles)
        .first()
    )
    if found is None or (token is not None and token.project_id not in (None, found.project_id)):
        raise Http404
    # For the lines that are logged from here on.
    bind_contextvars(user_id=user.pk, project_id=str(found.project_id))
    return found


def project_for_reading(user, slug: str, token=None) -> Project:
    return membership(user, slug, token=token).project


def project_for_writing(user, slug: str, token=None) -> Project:
    return membership(user, slug, WRITERS, token).project


def project_for_owning(user, slug: str, token=None) -> Project:
    return membership(user, slug, (Role.OWNER,), token).project
