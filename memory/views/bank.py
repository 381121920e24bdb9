"""What a project remembers, as a picture of its layers, and what still waits to be remembered."""

from collections.abc import Iterable
from itertools import groupby

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memory.access import entries_for, may_decide, may_forget
from memory.layers.periods import Granularity
from memory.layers.rendering import Rendered, rendered_bank
from memory.models import Entry, State
from memory.schedule import waiting
from projects.access import membership
from projects.models import Membership

ENTRIES_A_LAYER = 200
PROPOSED_SHOWN = 20
HIDDEN_SHOWN = 50
# What is spoken for by its digest, or hidden, is not drawn: the digest's page leads to it.
DRAWN = (State.LIVE, State.PROPOSED, State.FADED, State.STALE)
# A block this long fills the width, unless there are longer ones.
FULL_WIDTH_TOKENS = 180


@login_required
@require_GET
def memory(request: HttpRequest, slug: str) -> HttpResponse:
    """The layers of a project, the text they come to, what did not fit and what is to come."""
    member = membership(request.user, slug)
    project = member.project
    layers = {granularity: _drawn(member, granularity) for granularity in Granularity}
    drawn = [entry for layer in layers.values() for entry in layer]
    bank = rendered_bank(project)
    context = {
        "project": project,
        "membership": member,
        "layers": {name.value: _by_period(layer) for name, layer in layers.items() if layer},
        "drawn": drawn,
        "marks": _marks(drawn),
        "scale": max([FULL_WIDTH_TOKENS, *(entry.tokens for entry in drawn)]),
        "bank": bank,
        "left_out": _left_out(member, bank),
        "waiting": waiting(request.user, project),
        "proposed": _proposed(member, drawn) if member.may_write else [],
        "hidden": _hidden(member) if member.may_write else [],
        "may_forget": may_forget(member),
    }
    return render(request, "memory/bank.html", context)


def _drawn(member: Membership, granularity: Granularity) -> list[Entry]:
    """The newest entries of a layer that the picture shows, newest first."""
    entries = entries_for(member).filter(granularity=granularity, state__in=DRAWN)
    return list(entries.newest_first()[:ENTRIES_A_LAYER])


def _by_period(layer: Iterable[Entry]) -> list[list[Entry]]:
    """The entries of a layer, those of one period together."""
    return [list(entries) for _, entries in groupby(layer, lambda entry: entry.period_key)]


def _marks(drawn: Iterable[Entry]) -> set[str]:
    """What the legend has to explain beside the layers: states, and pins."""
    marks = {entry.state for entry in drawn}
    return marks | {"pinned"} if any(entry.pinned for entry in drawn) else marks


def _proposed(member: Membership, drawn: Iterable[Entry]) -> list[tuple[Entry, bool]]:
    """What waits for review, and for each whether the member decides on it."""
    waits = [entry for entry in drawn if entry.state == State.PROPOSED]
    return [(entry, may_decide(member, entry)) for entry in waits[:PROPOSED_SHOWN]]


def _hidden(member: Membership) -> list[Entry]:
    entries = entries_for(member).filter(state=State.HIDDEN)
    return list(entries.newest_first()[:HIDDEN_SHOWN])


def _left_out(member: Membership, bank: Rendered) -> list[tuple[Entry, str]]:
    """The entries that did not fit into the bank, newest first, each with its reason."""
    reasons = dict(bank.left_out[:ENTRIES_A_LAYER])
    entries = entries_for(member).filter(pk__in=reasons).newest_first()
    return [(entry, reasons[entry.pk]) for entry in entries]
