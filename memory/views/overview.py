"""A project's home: who is here, what happened lately, and its memory at a glance."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory.glance import Glance
from memory.layers.rendering import rendered_bank
from memory.models import Activity
from memory.views.rows import rows
from projects.access import membership

LATELY = 12
PEOPLE_SHOWN = 50


@login_required
@require_GET
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """`?part` gives what happened lately alone, which the page asks for again and again."""
    member = membership(request.user, slug)
    project = member.project
    acts = Activity.objects.filter(project=project)
    context: dict[str, object] = {
        "project": project,
        "membership": member,
        "rows": rows(member, acts, LATELY),
    }
    template = "memory/_lately.html"
    if "part" not in request.GET:
        template = "memory/overview.html"
        people = project.memberships.select_related("user").order_by("created_at", "id")
        context |= {
            "people": people[:PEOPLE_SHOWN],
            "bank": rendered_bank(project),
            "glance": Glance(project),
        }
    with timezone.override(project.zone):
        return render(request, template, context)
