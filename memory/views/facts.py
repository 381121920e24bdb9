"""Facts: what is held to be so, since when, who said it; added, changed and decided on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory import facts
from memory.facts import Refused, access
from memory.facts.forms import CloseForm, FactForm, SearchForm, midnight
from memory.forgetting import Scope, rights
from memory.layers.summarising import EXTRACTIVE
from memory.models import Activity, Fact, FactSource, Reason, Standing
from memory.views.rows import rows as rows_of
from projects.access import WRITERS, membership
from projects.models import Membership, Role

FACTS_A_PAGE = 50
HISTORY_SHOWN = 50
ACTS_SHOWN = 50


@dataclass(frozen=True)
class Row:
    """A fact with those of its sources that the reader may open, and how many there are in all."""

    fact: Fact
    sources: Sequence[FactSource]
    told: int
    decides: bool = False

    @property
    def unreadable(self) -> int:
        return self.told - len(self.sources)


@login_required
@require_GET
def listed(request: HttpRequest, slug: str) -> HttpResponse:
    """What is so today or on another day, as known today or then; or what waits or is hidden.

    `add` opens the form for another one, with what the query says of it.
    """
    member = membership(request.user, slug)
    names = ("subject", "predicate", "object") if "add" in request.GET else ()
    told = {name: request.GET.get(name, "") for name in names}
    return _list(request, member, FactForm(member.project, initial=told))


@login_required
@require_http_methods(["GET", "POST"])
def add(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method == "GET":
        return redirect(reverse("facts", args=[slug]) + "?add")
    member = membership(request.user, slug, WRITERS)
    form = FactForm(member.project, request.POST)
    with timezone.override(member.project.zone):
        if form.is_valid():
            try:
                fact, made = facts.give(member, form.statement(request.user))
            except Refused as refused:
                form.add_error(None, str(refused))
            else:
                _tell(request, fact, made)
                return redirect("fact", slug, fact.pk)
    return _list(request, member, form, status=400)


def _tell(request: HttpRequest, fact: Fact, made: bool) -> None:
    if fact.state == Standing.PROPOSED:
        messages.warning(request, _("Recorded. It waits for an owner to approve it."))
    elif made:
        messages.success(request, _("Recorded."))
    else:
        messages.success(request, _("This was known already."))


def _list(
    request: HttpRequest, member: Membership, adding: FactForm, status: int = 200
) -> HttpResponse:
    project = member.project
    form = SearchForm(request.GET)
    chosen = request.GET.get("state", Standing.LIVE)
    if chosen not in Standing.values:
        raise Http404
    with timezone.override(project.zone):
        found = access.facts_for(member).select_related("user")
        if chosen != Standing.LIVE:
            found = found.current().filter(state=chosen)
        elif form.is_valid():
            found = form.among(found, project.zone)
        else:
            found, status = found.none(), 400
        page = Paginator(found.newest_first(), FACTS_A_PAGE).get_page(request.GET.get("page"))
        context = {
            "project": project,
            "membership": member,
            "form": form,
            "adding": adding,
            "states": _by_state(member),
            "chosen": chosen,
            "page": page,
            "rows": _rows(member, list(page), deciding=chosen != Standing.LIVE),
            "contradictions": _contradictions(member) if chosen == Standing.LIVE else [],
            "finds_none": project.system_model_name == EXTRACTIVE,
            "back": request.get_full_path() if request.method == "GET" else "",
        }
        return render(request, "memory/facts.html", context, status=status)


def _by_state(member: Membership) -> list[tuple[str, str, int]]:
    """(state, its name, how many facts are in it), as far as the member sees them."""
    counted = access.facts_for(member).current().order_by().values_list("state")
    counts = dict(counted.annotate(Count("pk")))
    return [
        (value, str(label), counts.get(value, 0))
        for value, label in Standing.choices
        if value == Standing.LIVE or counts.get(value)
    ]


def _rows(member: Membership, found: Sequence[Fact], deciding: bool = False) -> list[Row]:
    readable = access.readable_sources(member, found)
    ids = {fact.earlier_of_id or fact.pk for fact in found}
    counted = FactSource.objects.filter(fact__in=ids).order_by().values_list("fact")
    told = dict(counted.annotate(Count("pk")))
    return [
        Row(
            fact,
            readable.get(fact.earlier_of_id or fact.pk, []),
            told.get(fact.earlier_of_id or fact.pk, 0),
            deciding and access.may_decide(member, fact),
        )
        for fact in found
    ]


def _contradictions(member: Membership) -> list[list[Row]]:
    """For owners: facts that cannot all be so."""
    if member.role != Role.OWNER:
        return []
    return [_rows(member, alike) for alike in access.contradictions(member)]


@login_required
@require_GET
def one(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """One fact: its sources, what was so before and after, and what can be done with it."""
    member = membership(request.user, slug)
    fact = _found(member, pk)
    return _page(request, member, fact, FactForm.of(member.project, fact))


def _found(member: Membership, pk: Any) -> Fact:
    """The fact as it is now, with its end where it stands. Raises Http404."""
    current = access.facts_for(member).current().select_related("user", "project")
    return current.known().filter(pk=pk).first() or get_object_or_404(current, pk=pk)


def _page(
    request: HttpRequest, member: Membership, fact: Fact, form: FactForm, status: int = 200
) -> HttpResponse:
    project = member.project
    history = list(facts.history(member, fact).select_related("user")[:HISTORY_SHOWN])
    earlier = fact.earlier.order_by("-version")
    [row] = _rows(member, [fact])
    acts = Activity.objects.filter(project=project, fact_id=fact.pk)
    with timezone.override(project.zone):
        context = {
            "project": project,
            "membership": member,
            "fact": fact,
            "row": row,
            "history": history if len(history) > 1 else [],
            "earlier": list(earlier[:HISTORY_SHOWN]),
            "form": form,
            "closing": CloseForm(initial={"at": timezone.localdate()}),
            "decides": access.may_decide(member, fact),
            "may_forget": rights.may_forget(member, Scope(fact=fact.pk)),
            "acts": rows_of(member, acts)[:ACTS_SHOWN],
        }
        return render(request, "memory/fact.html", context, status=status)


@login_required
@require_POST
def change(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Does `action` to a fact: edit, close, approve, reject, hide or show."""
    member = membership(request.user, slug, WRITERS)
    fact = _found(member, pk)
    action = request.POST.get("action", "")
    if action == "edit":
        return _edit(request, member, fact)
    if action == "close":
        return _close(request, member, fact)
    act = DECISIONS.get(action)
    if act is None:
        raise Http404
    if not access.may_decide(member, fact):
        messages.error(request, _("An owner decides on it."))
    else:
        _do(request, lambda: act(fact, request.user))
    return redirect(_back(request, slug, pk))


DECISIONS: dict[str, Callable[[Fact, Any], Fact]] = {
    "approve": facts.approve,
    "reject": lambda fact, by: facts.hide(fact, by, Reason.WRONG),
    "hide": facts.hide,
    "show": facts.show,
}


def _edit(request: HttpRequest, member: Membership, fact: Fact) -> HttpResponse:
    form = FactForm(member.project, request.POST, fact=fact)
    if form.is_valid():
        given = form.cleaned_data
        try:
            facts.edit(fact, form.statement(request.user), request.user, given["version"])
        except Refused as refused:
            # What was written is not lost with the refusal.
            form.add_error(None, str(refused))
        else:
            messages.success(request, _("Changed. What it said before is kept."))
            return redirect("fact", member.project.slug, fact.pk)
    return _page(request, member, fact, form, status=400)


def _close(request: HttpRequest, member: Membership, fact: Fact) -> HttpResponse:
    form = CloseForm(request.POST)
    if form.is_valid():
        day, reason = form.cleaned_data["at"], form.cleaned_data["reason"]
        today = timezone.localdate(timezone=member.project.zone)
        at = midnight(day, member.project.zone) if day and day != today else timezone.now()
        _do(request, lambda: facts.close(fact, at, request.user, reason or Reason.OUTDATED))
    else:
        messages.error(request, _("That is no day."))
    return redirect("fact", member.project.slug, fact.pk)


def _do(request: HttpRequest, act: Callable[[], object]) -> None:
    try:
        act()
    except Refused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("Done."))


def _back(request: HttpRequest, slug: str, pk: Any) -> Any:
    """Where to go on: to the queue that it was decided in, or to the fact."""
    if request.POST.get("queue") in Standing.values:
        return f"{reverse('facts', args=[slug])}?state={request.POST['queue']}"
    return reverse("fact", args=[slug, pk])
