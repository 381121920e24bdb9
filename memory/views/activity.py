"""The activity log: what memory did and people did to it, and what is due next."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory.forms import ActivityForm
from memory.models import Activity
from memory.schedule import due
from memory.views.rows import ROWS_A_PAGE, rows
from projects.access import membership


@login_required
@require_GET
def activity(request: HttpRequest, slug: str) -> HttpResponse:
    """What was done, the newest first, and what is to come; `?part` gives this alone, which the
    page asks for again and again.
    """
    member = membership(request.user, slug)
    project = member.project
    form = ActivityForm(project, request.GET)
    acts = Activity.objects.filter(project=project)
    found = rows(member, form.among(acts)) if form.is_valid() else []
    older = request.GET.copy()
    older.pop("part", None)
    if len(found) == ROWS_A_PAGE:
        older["before"] = str(found[-1].act.pk)
    context = {
        "project": project,
        "membership": member,
        "form": form,
        "rows": found,
        "due": due(member),
        "older": older.urlencode() if len(found) == ROWS_A_PAGE else "",
        "is_first": not request.GET.get("before"),
        "asked": request.GET.urlencode(),
    }
    template = "memory/_log.html" if "part" in request.GET else "memory/activity.html"
    with timezone.override(project.zone):
        return render(request, template, context, status=200 if form.is_valid() else 400)
