"""The HTML pages of a project's memory."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any

from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from projects.models import MemberRole, Membership
from projects.permissions import membership, require_active


def project_page(
    get: Collection[str] = MemberRole.values, post: Collection[str] = ()
) -> Callable[[Callable], Callable]:
    """Return a decorator for views. It passes the user's membership instead of the slug, and
    activates the project's time zone.

    `get` and `post` are the roles that may use the method. A method without roles answers 405.
    """
    roles = {"GET": get, "POST": post}

    def decorate(view: Callable) -> Callable:
        @require_http_methods([method for method, allowed in roles.items() if allowed])
        @wraps(view)
        def page(request: HttpRequest, slug: str, **kwargs: Any) -> HttpResponse:
            member = membership(request.user, slug, roles[request.method or ""])
            if request.method == "POST":
                require_active(member.project)
            with timezone.override(member.project.zone):
                response: HttpResponse = view(request, member, **kwargs)
            return response

        return page

    return decorate


def count_choices(
    rows: QuerySet, column: str, choices: Iterable[tuple[str, Any]]
) -> list[tuple[str, str, int]]:
    """Return (value, label, number of rows) for each choice of a column."""
    counts = dict(rows.order_by().values_list(column).annotate(Count("pk")))
    return [(value, str(label), counts.get(value, 0)) for value, label in choices]


def render_page(
    request: HttpRequest,
    member: Membership,
    template: str,
    context: Mapping[str, Any],
    status: int = 200,
) -> HttpResponse:
    """Render a page of the member's project."""
    context = {"project": member.project, "membership": member, **context}
    return render(request, f"memory/{template}", context, status=status)
