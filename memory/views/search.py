"""What was said in a project, found again: the page of recall."""

import re
from datetime import datetime, time, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory.forms import SearchForm
from memory.recall import Result, Scope, recall
from projects.access import membership
from projects.models import Project

RESULTS = 30
# Letters of words that are everywhere.
SHORTEST = 3


@login_required
@require_GET
def search(request: HttpRequest, slug: str) -> HttpResponse:
    """The excerpts that answer `q` best, or the latest; each with why it was found."""
    member = membership(request.user, slug)
    project = member.project
    with timezone.override(project.zone):
        form = SearchForm(project, request.GET)
        results = _found(project, request.user, form) if form.is_valid() else []
        context: dict[str, Any] = {
            "project": project,
            "membership": member,
            "form": form,
            "query": form.data.get("q", ""),
            "marked": _telling(form.data.get("q", "")),
            "results": results,
        }
        status = 200 if form.is_valid() else 400
        return render(request, "memory/search.html", context, status=status)


def _found(project: Project, user, form: SearchForm) -> list[Result]:
    given = form.cleaned_data
    since, until = given["since"], given["until"]
    scope = Scope(
        project,
        user,
        since=since and _midnight(project, since),
        # The whole of that day, too.
        until=until and _midnight(project, until + timedelta(days=1)),
        author=given["author"] or None,
    )
    return recall(scope, given["q"], limit=RESULTS)


def _telling(query: str) -> str:
    """The words of a question that are worth a mark where they are found."""
    words = re.findall(r"\w+", query)
    return " ".join(one for one in words if len(one) > SHORTEST or not one.isalpha())


def _midnight(project: Project, day) -> datetime:
    return datetime.combine(day, time.min, project.zone)
