"""The home page of a project: members, recent activity and memory statistics."""

from django.http import HttpRequest, HttpResponse

from memory.layers.bank_cache import rendered_bank
from memory.layers.statistics import MemoryStatistics
from memory.models import Activity
from memory.views import project_page, render_page
from memory.views.activity import activity_rows
from projects.models import Membership

RECENT_ACTS = 12
MAX_PEOPLE = 50


@project_page()
def overview(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show the overview. `?part` returns the recent activity alone, which the page polls."""
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
    return render_page(request, member, template, context)
