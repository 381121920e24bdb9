"""The activity log, and the overview page of a project with its latest rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from chat.models import Session
from chat.permissions import sessions_for
from memory.facts import facts_for
from memory.layers.bank_cache import rendered_bank
from memory.layers.pending import pending_work
from memory.layers.statistics import MemoryStatistics
from memory.models import Activity, ActivityVerb, Entry, Fact, File
from memory.permissions import entries_for
from memory.views import project_page, render_page
from memory.views.charts.usage import model_calls, usage_charts
from memory.views.forms.search import ActivityForm
from projects.models import Membership

PAGE_SIZE = 50
RECENT_ACTS = 12
MAX_PEOPLE = 50


@dataclass(frozen=True)
class ActivityRow:
    """An action with the objects that it names, if they exist and the reader may open them."""

    act: Activity
    entry: Entry | None
    session: Session | None
    fact: Fact | None = None
    file: File | None = None

    @property
    def day(self) -> date:
        """The day of the action in the active time zone."""
        return timezone.localdate(self.act.at)


@project_page()
def activity(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show the log, newest first, and pending work. `?part` returns what the page polls."""
    form = ActivityForm(member.project, request.GET)
    acts = Activity.objects.filter(project=member.project)
    rows = activity_rows(member, form.apply(acts)) if form.is_valid() else []
    older = request.GET.copy()
    older.pop("part", None)
    if has_older := len(rows) == PAGE_SIZE:
        older["before"] = str(rows[-1].act.pk)
    context = {
        "form": form,
        "rows": rows,
        "due": pending_work(member),
        "older": older.urlencode() if has_older else "",
        "is_first": not request.GET.get("before"),
        "query_string": request.GET.urlencode(),
    }
    template = "_activity_log.html" if "part" in request.GET else "activity.html"
    return render_page(request, member, template, context, 200 if form.is_valid() else 400)


@project_page()
def overview(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show the overview. `?part` returns only the recent activity, which the page polls."""
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
            "usage": usage_charts(model_calls(project)),
        }
    return render_page(request, member, template, context)


def activity_rows(
    member: Membership, activities: QuerySet[Activity], limit: int = PAGE_SIZE
) -> list[ActivityRow]:
    """Return the newest `limit` rows of `activities`. Takes at most five queries."""
    acts = list(activities.select_related("by", "whom").order_by("-id")[:limit])
    visible = entries_for(member).select_related("file__document")
    entries = visible.in_bulk(_ids(acts, "entry_id"))
    readable = sessions_for(member.user).filter(project=member.project)
    sessions = readable.in_bulk(_ids(acts, "session_id"))
    facts = facts_for(member).current().in_bulk(_ids(acts, "fact_id"))
    files = File.objects.visible_to(member.user).filter(project=member.project)
    added = files.in_bulk({_file_id(act) for act in acts} - {None})
    return [
        ActivityRow(
            act,
            entries.get(act.entry_id),
            sessions.get(act.session_id),
            facts.get(act.fact_id),
            added.get(_file_id(act)),
        )
        for act in acts
    ]


def _file_id(act: Activity) -> UUID | None:
    is_file = act.verb == ActivityVerb.FILE_ADDED and act.related
    return UUID(act.related[0]) if is_file else None


def _ids(acts: Sequence[Activity], column: str) -> set:
    return {getattr(act, column) for act in acts} - {None}
