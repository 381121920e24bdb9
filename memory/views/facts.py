"""The pages of facts: list, detail page, and forms to add, change and review facts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.providers.booking import Payer
from memory import facts
from memory.facts import permissions
from memory.forgetting.service import ForgetScope
from memory.layers.summarising.base import EXTRACTIVE
from memory.models import Activity, Fact, FactSource, FactStatus, ModerationReason
from memory.recall import relevant_facts
from memory.views import count_choices, project_page, render_page
from memory.views.activity import activity_rows
from memory.views.charts.facts_over_time import facts_over_time
from memory.views.forms.facts import FactCloseForm, FactForm, FactSearchForm, midnight
from projects.core.errors import DomainError
from projects.models import MemberRole, Membership
from projects.permissions import WRITERS

PAGE_SIZE = 50
MAX_HISTORY = 50
# The maximum number of facts that a search returns.
MAX_FOUND = 50
# The maximum number of facts on the timeline.
MAX_DRAWN = 1_000


@dataclass(frozen=True)
class FactRow:
    """A fact, the sources that the reader may open, and the number of all its sources."""

    fact: Fact
    sources: Sequence[FactSource]
    source_count: int
    decides: bool = False

    @property
    def unreadable(self) -> int:
        return self.source_count - len(self.sources)


@project_page()
def fact_list(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show the facts that are valid today or on another day, or facts that wait for review or are
    hidden.

    `add` opens the form for a new fact, with values from the query string. `timeline` draws the
    newest facts over time.
    """
    if "timeline" in request.GET:
        rows = permissions.facts_for(member).with_validity().newest_first()[:MAX_DRAWN]
        context = {
            "timeline": facts_over_time(rows),
            "states": _states(member),
            "chosen": "timeline",
        }
        return render_page(request, member, "facts_timeline.html", context)
    names = ("subject", "predicate", "object") if "add" in request.GET else ()
    initial = {name: request.GET.get(name, "") for name in names}
    return _list_page(request, member, FactForm(member.project, initial=initial))


@project_page(post=WRITERS)
def fact_create(request: HttpRequest, member: Membership) -> HttpResponse:
    if request.method == "GET":
        return redirect(resolve_url("facts", member.project.slug) + "?add")
    form = FactForm(member.project, request.POST)
    if form.is_valid():
        try:
            fact, is_new = facts.create_fact(member, form.statement(request.user))
        except DomainError as error:
            form.add_error(None, str(error))
        else:
            if fact.state == FactStatus.PROPOSED:
                messages.warning(request, _("The fact waits for review."))
            elif is_new:
                messages.success(request, _("Fact added."))
            else:
                messages.success(request, _("This fact already exists."))
            return redirect("fact", member.project.slug, fact.pk)
    return _list_page(request, member, form, status=400)


def _list_page(
    request: HttpRequest, member: Membership, new_fact: FactForm, status: int = 200
) -> HttpResponse:
    project = member.project
    form = FactSearchForm(request.GET)
    state = request.GET.get("state", FactStatus.LIVE)
    if state not in FactStatus.values:
        raise Http404
    is_live = state == FactStatus.LIVE
    rows = permissions.facts_for(member).select_related("user")
    query = ""
    if not is_live:
        rows = rows.current().filter(state=state)
    elif form.is_valid():
        rows = form.among(rows, project.zone)
        query = form.cleaned_data["q"]
    else:
        rows, status = rows.none(), 400
    listed = (
        relevant_facts(project, rows, query, MAX_FOUND, Payer.of(request))
        if query
        else rows.newest_first()
    )
    page = Paginator(listed, PAGE_SIZE).get_page(request.GET.get("page"))
    groups = (
        permissions.contradictions(member) if is_live and member.role == MemberRole.OWNER else []
    )
    conflicting = {row.fact.pk: row for row in _rows(member, list(chain.from_iterable(groups)))}
    context = {
        "form": form,
        "adding": new_fact,
        "states": _states(member),
        "chosen": state,
        "page": page,
        "rows": _rows(member, list(page), deciding=not is_live),
        "contradictions": [[conflicting[fact.pk] for fact in group] for group in groups],
        "finds_none": project.system_model_name == EXTRACTIVE,
        "back": request.get_full_path() if request.method == "GET" else "",
    }
    return render_page(request, member, "facts.html", context, status)


def _states(member: Membership) -> list[tuple[str, str, int]]:
    """Return the states that occur, and always LIVE, with the number of facts in each. Of the live
    facts, those that are valid now count.
    """
    facts = permissions.facts_for(member)
    valid = facts.with_validity().valid_at(timezone.now())
    return [
        (value, label, valid.count() if value == FactStatus.LIVE else count)
        for value, label, count in count_choices(facts.current(), "state", FactStatus.choices)
        if value == FactStatus.LIVE or count
    ]


def _rows(member: Membership, rows: Sequence[Fact], deciding: bool = False) -> list[FactRow]:
    # Sources belong to the current version of a fact.
    ids = [fact.earlier_of_id or fact.pk for fact in rows]
    readable = permissions.readable_sources(member, rows)
    counts = FactSource.objects.filter(fact__in=ids).order_by().values_list("fact")
    source_counts = dict(counts.annotate(Count("pk")))
    decidable = permissions.decidable(member, rows) if deciding else set()
    return [
        FactRow(
            fact,
            readable.get(pk, []),
            source_counts.get(pk, 0),
            fact.pk in decidable,
        )
        for pk, fact in zip(ids, rows, strict=True)
    ]


@project_page()
def fact_detail(request: HttpRequest, member: Membership, pk) -> HttpResponse:
    """Show a fact with its sources and history, and forms to change it."""
    fact = permissions.fact_for_reading(member, pk)
    return _detail_page(request, member, fact, FactForm.of(member.project, fact))


def _detail_page(
    request: HttpRequest, member: Membership, fact: Fact, form: FactForm, status: int = 200
) -> HttpResponse:
    project = member.project
    history = list(facts.topic_history(member, fact).select_related("user")[:MAX_HISTORY])
    earlier = permissions.facts_for(member).filter(earlier_of=fact)
    acts = Activity.objects.filter(project=project, fact_id=fact.pk)
    context = {
        "fact": fact,
        "row": _rows(member, [fact])[0],
        "history": history if len(history) > 1 else [],
        "earlier": list(earlier.order_by("-version")[:MAX_HISTORY]),
        "form": form,
        "closing": FactCloseForm(initial={"at": timezone.localdate()}),
        "decides": permissions.may_decide(member, fact),
        "may_forget": ForgetScope(fact=fact.pk).is_permitted_to(member),
        "acts": activity_rows(member, acts),
    }
    return render_page(request, member, "fact.html", context, status)


DECISIONS: dict[str, Callable[[Fact, Any], Fact]] = {
    "approve": facts.approve,
    "reject": lambda fact, by: facts.hide(fact, by, ModerationReason.WRONG),
    "hide": facts.hide,
    "show": facts.unhide,
}


@project_page(get=(), post=WRITERS)
def fact_action(request: HttpRequest, member: Membership, pk) -> HttpResponse:
    """Apply `action` (edit, close, approve, reject, hide or show) to a fact."""
    fact = permissions.fact_for_reading(member, pk)
    action, slug = request.POST.get("action", ""), member.project.slug
    if action == "edit":
        return _edit(request, member, fact)
    if action == "close":
        return _close(request, member, fact)
    decide = DECISIONS.get(action)
    if decide is None:
        raise Http404
    if not permissions.may_decide(member, fact):
        messages.error(request, _("Only an owner can decide this."))
    else:
        _apply(request, lambda: decide(fact, request.user))
    if request.POST.get("queue") in FactStatus.values:
        return redirect(f"{resolve_url('facts', slug)}?state={request.POST['queue']}")
    return redirect("fact", slug, pk)


def _edit(request: HttpRequest, member: Membership, fact: Fact) -> HttpResponse:
    form = FactForm(member.project, request.POST, fact=fact)
    if form.is_valid():
        version = form.cleaned_data["version"]
        try:
            facts.edit(fact, form.statement(request.user), request.user, version)
        except DomainError as error:
            # Show the form with the rejected text again.
            form.add_error(None, str(error))
        else:
            messages.success(request, _("Saved. The previous version is kept."))
            return redirect("fact", member.project.slug, fact.pk)
    return _detail_page(request, member, fact, form, status=400)


def _close(request: HttpRequest, member: Membership, fact: Fact) -> HttpResponse:
    form = FactCloseForm(request.POST)
    if form.is_valid():
        day, zone = form.cleaned_data["at"], member.project.zone
        reason = form.cleaned_data["reason"]
        today = timezone.localdate(timezone=zone)
        end = midnight(day, zone) if day and day != today else timezone.now()
        _apply(request, lambda: facts.close(fact, end, request.user, reason))
    else:
        messages.error(request, _("This is not a valid date."))
    return redirect("fact", member.project.slug, fact.pk)


def _apply(request: HttpRequest, change: Callable[[], object]) -> None:
    try:
        change()
    except DomainError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Done."))
