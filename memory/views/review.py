"""The queue: entries by state, layer, reason, time and words, to be decided on one by one or many
at once.
"""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory.access import entries_for, may_decide, may_forget
from memory.facts import facts_for
from memory.forms import QueueForm
from memory.models import Standing, State, Waiting
from memory.moderation import WORDED, Act
from projects.access import membership
from projects.models import Membership

ENTRIES_A_PAGE = 50
# What many at once may be asked for.
IN_BULK = [act for act in Act if act not in WORDED]


@login_required
@require_GET
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """The entries asked for, those that wait for review first if nothing is asked."""
    member = membership(request.user, slug)
    asked = request.GET if request.GET else {"state": State.PROPOSED}
    form = QueueForm(asked)
    with timezone.override(member.project.zone):
        found = entries_for(member)
        found = form.among(found) if form.is_valid() else found.none()
        page = Paginator(found.newest_first(), ENTRIES_A_PAGE).get_page(request.GET.get("page"))
        context = {
            "project": member.project,
            "membership": member,
            "form": form,
            "states": _by_state(member),
            "reasons": _by_reason(member),
            "chosen": form.data.get("state", ""),
            "because": form.data.get("because", ""),
            "page": page,
            "rows": [(entry, may_decide(member, entry)) for entry in page],
            "acts": _acts(member),
            "back": request.get_full_path(),
            "facts_wait": facts_for(member).current().filter(state=Standing.PROPOSED).count(),
        }
        return render(
            request, "memory/review.html", context, status=200 if form.is_valid() else 400
        )


def _by_state(member: Membership) -> list[tuple[str, str, int]]:
    """(state, its name, how many entries are in it), what waits for review first."""
    return _counted(member, "state", State.choices)


def _by_reason(member: Membership) -> list[tuple[str, str, int]]:
    """As `_by_state`, of why what waits for review waits."""
    return [one for one in _counted(member, "waits_because", Waiting.choices) if one[2]]


def _counted(member: Membership, column: str, choices) -> list[tuple[str, str, int]]:
    rows = entries_for(member).order_by().values_list(column)
    counts = dict(rows.annotate(Count("pk")))
    return [(value, label, counts.get(value, 0)) for value, label in choices]


def _acts(member: Membership) -> list[Act]:
    """What the member may at all ask for many at once."""
    if not member.may_write:
        return []
    owned = (Act.FORGET,) if not may_forget(member) else ()
    return [act for act in IN_BULK if act not in owned]
