"""The first page: the user's projects, with their chats and the size of their memory."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from chat.permissions import sessions_for
from memory.models import Entry, RenderedBank
from projects.forms import NewProjectForm
from projects.models import Invitation, Membership
from projects.services import create_project

# The maximum number of invitations on the page, the newest. Anybody can send any number of them,
# one for each project of theirs.
MAX_INVITATIONS = 50


class ProjectRow(NamedTuple):
    """A membership with the chats that the user may read.

    `tokens` is the size of the memory when it was last sent or shown; None before. `memories` is
    the number of entries in use.
    """

    membership: Membership
    people: int
    tokens: int | None
    memories: int
    chats: int = 0
    last_activity_at: datetime | None = None


@require_http_methods(["GET", "POST"])
def project_list(request: HttpRequest) -> HttpResponse:
    """Show the user's projects, the latest first, and a form for a new one.

    An administrator without projects is led to the welcome page, unless `?all` is set.
    """
    invitations = Invitation.objects.for_user(request.user)[:MAX_INVITATIONS]
    rows = _project_rows(request.user)
    is_new_admin = request.user.is_superuser and not rows
    if is_new_admin and not invitations and request.method == "GET" and "all" not in request.GET:
        return redirect("welcome")
    form = NewProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        project = create_project(request.user, **form.cleaned_data)
        return redirect("project", project.slug)
    context = {
        "rows": [row for row in rows if not row.membership.project.is_archived],
        "archived": [row for row in rows if row.membership.project.is_archived],
        "invitations": invitations,
        "form": form,
    }
    return render(request, "projects/list.html", context, status=400 if form.is_bound else 200)


def _project_rows(user) -> list[ProjectRow]:
    """Return the user's projects, those with the latest chats first. Two queries."""
    banks = RenderedBank.objects.filter(project=OuterRef("project"))
    memberships = Membership.objects.filter(user=user).select_related("project")
    in_use = Entry.objects.live().filter(project=OuterRef("project")).order_by().values("project")
    memberships = memberships.annotate(
        people=Count("project__memberships"),
        bank_tokens=Subquery(banks.values("tokens")),
        memories=Coalesce(Subquery(in_use.values(count=Count("pk"))), 0),
    )
    sessions = sessions_for(user).chats().order_by().values("project")
    chats = sessions.annotate(count=Count("pk", distinct=True), last=Max("last_activity_at"))
    by_project: dict[UUID, tuple[int, datetime]] = {
        row["project"]: (row["count"], row["last"]) for row in chats
    }
    rows = [
        ProjectRow(
            member,
            member.people,
            member.bank_tokens,
            member.memories,
            *by_project.get(member.project_id, ()),
        )
        for member in memberships.order_by("project__name", "project__id")
    ]

    def activity(row: ProjectRow) -> datetime:
        return row.last_activity_at or row.membership.project.created_at

    return sorted(rows, key=activity, reverse=True)
