"""The memory page: a chart of the layers, the rendered bank, and entries that wait for review."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse

from memory.layers.bank_cache import rendered_bank
from memory.layers.history import bank_as_of
from memory.layers.pending import pending_conversations
from memory.models import EntryStatus
from memory.models.entries import CONVERSATION
from memory.permissions import entries_for, may_decide, may_forget
from memory.views import layers_chart, lineage, project_page, render_page
from memory.views.charts.layers_over_time import layers_over_time
from projects.models import Membership

MAX_PROPOSED = 20
MAX_HIDDEN = 50


@project_page()
def memory_bank(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show the layers of a project, the rendered bank, left-out entries and pending sessions.

    Query parameters: `at` selects a past day. `part` returns only the list, without the chart over
    time. `tree` shows the entries as a tree down to the messages.
    """
    days = layers_chart.day_range(member.project, request.GET.get("at", ""))
    context: dict[str, Any] = {"days": days}
    if days.is_today:
        context |= _current(request, member)
    else:
        moment = layers_chart.end_of_day(days.shown, member.project)
        bank = bank_as_of(member.project, moment)
        context |= {"chart": layers_chart.chart_as_of(member, moment), "bank": bank}
    # The entries that did not fit into the bank, with reasons, newest first.
    reasons = dict(context["bank"].left_out[: layers_chart.MAX_ENTRIES_PER_LAYER])
    left_out = entries_for(member).filter(pk__in=reasons).newest_first()
    context["left_out"] = [(entry, reasons[entry.pk]) for entry in left_out]
    if "tree" in request.GET:
        context["tree"] = _tree(member, context["chart"].drawn)
    # The page lists left-out and proposed entries separately: each entry is listed once.
    elsewhere = {*reasons, *(entry.pk for entry, _decides in context.get("proposed", ()))}
    context["listed"] = context["chart"].without(elsewhere)
    if "part" in request.GET:
        return render_page(request, member, "_layers_chart.html", context)
    context["over_time"] = layers_over_time(member.project, days)
    return render_page(request, member, "bank.html", context)


def _current(request: HttpRequest, member: Membership) -> dict[str, Any]:
    chart = layers_chart.current_chart(member)
    context: dict[str, Any] = {
        "chart": chart,
        "bank": rendered_bank(member.project),
        "waiting": pending_conversations(request.user, member.project),
        "may_forget": may_forget(member),
    }
    if member.is_writer:
        proposed = [block.entry for block in chart.drawn if block.state == EntryStatus.PROPOSED]
        context["proposed"] = [
            (entry, may_decide(member, entry)) for entry in proposed[:MAX_PROPOSED]
        ]
        hidden = entries_for(member).filter(state=EntryStatus.HIDDEN)
        context["hidden"] = list(hidden.newest_first()[:MAX_HIDDEN])
    return context


def _tree(
    member: Membership, drawn: Sequence[layers_chart.LayerBlock]
) -> list[lineage.EntrySource]:
    """Return the listed entries with their sources, newest layer first."""
    entries = [block.entry for block in drawn]
    leaves = lineage.leaves(member, (entry for entry in entries if entry.session_id))
    by_id = {leaf.entry.pk: leaf for leaf in leaves}
    sources = [by_id.get(entry.pk) or lineage.EntrySource(entry) for entry in entries]
    lineage.add_sources(member, (it for it in sources if it.entry.granularity != CONVERSATION))
    return sources
