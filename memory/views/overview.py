"""The home page of a project: members, recent activity and memory statistics."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory.layers.bank_cache import rendered_bank
from memory.layers.statistics import MemoryStatistics
from memory.models import Activity
from memory.views import render_page
from memory.views.activity import activity_rows
from projects.permissions import membership

RECENT_ACTS = 12
MAX_PEOPLE = 50


@login_required
@require_GET
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the overview. `?part` returns the recent activity alone, which the page polls."""
    member = membership(request.user, slug)
    project = member.project
    acts = Activity.objects.filter(project=project)
    context: dict[str, object] = {"rows": activity_rows(member, acts, RECENT_ACTS)}
    template = "_recent_activity.html"
    if "part" not in request.GET:
        template = "overview.html"
        people = project.memberships.select_related("user").order_by("created_at", "id")
        context |= {
            "people": people[:MAX_PEOPLE],
            "bank": rendered_bank(project),
            "glance": MemoryStatistics(project),
        }
    with timezone.override(project.zone):
        return render_page(request, member, template, context)
