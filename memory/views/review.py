"""The review queue: lists entries by state, layer, reason, time and words."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse

from memory.facts import facts_for
from memory.models import EntryStatus, FactStatus
from memory.moderation.actions import TEXT_ACTIONS, ModerationAction
from memory.permissions import entries_for, may_decide, may_forget
from memory.views import count_choices, project_page, render_page
from memory.views.forms.entries import ReviewQueueForm
from projects.models import Membership

PAGE_SIZE = 50


@project_page()
def review(request: HttpRequest, member: Membership) -> HttpResponse:
    """List the entries that match the filters. Without filters, list those that wait for review."""
    is_filtered = bool(request.GET.keys() - {"page"})
    form = ReviewQueueForm(request.GET if is_filtered else {"state": EntryStatus.PROPOSED})
    entries = entries_for(member)
    entries = form.apply(entries) if form.is_valid() else entries.none()
    page = Paginator(entries.newest_first(), PAGE_SIZE).get_page(request.GET.get("page"))
    proposed_facts = facts_for(member).current().filter(state=FactStatus.PROPOSED)
    states = count_choices(entries_for(member), "state", EntryStatus.choices)
    chosen = form.data.get("state", "")
    # A member may apply these actions to several entries at once.
    excluded = TEXT_ACTIONS if may_forget(member) else (*TEXT_ACTIONS, ModerationAction.FORGET)
    acts = [act for act in ModerationAction if act not in excluded] if member.may_write else []
    context = {
        "form": form,
        "states": [row for row in states if row[2] or row[0] in (chosen, EntryStatus.PROPOSED)],
        "chosen": chosen,
        "is_unfiltered": form.is_valid() and form.is_unfiltered,
        "page": page,
        "rows": [(entry, may_decide(member, entry)) for entry in page],
        "acts": acts,
        "back": request.get_full_path(),
        "facts_wait": proposed_facts.count(),
    }
    status = 200 if form.is_valid() else 400
    return render_page(request, member, "review.html", context, status)
