"""What a project remembers, as a picture of its layers, and what still waits to be remembered."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chat.access import sessions_for
from memory.layers.bank import Bank
from memory.layers.digests import rendered_bank
from memory.layers.periods import Granularity
from memory.models import Cursor, Entry, State
from projects.access import membership
from projects.models import Project

ENTRIES_A_LAYER = 200
WAITING_SHOWN = 50
# What is spoken for by its digest, or hidden, is not drawn: the digest's page leads to it.
DRAWN = (State.LIVE, State.PROPOSED, State.FADED, State.STALE)
# A block this long fills the width, unless there are longer ones.
FULL_WIDTH_TOKENS = 180


@dataclass(frozen=True)
class Waiting:
    """A conversation that no entry covers yet. `title` is empty when the reader may not know it."""

    cursor: Cursor
    title: str
    due_at: datetime


@login_required
@require_GET
def memory(request: HttpRequest, slug: str) -> HttpResponse:
    """The layers of a project, the text they come to, what did not fit and what is to come."""
    member = membership(request.user, slug)
    project = member.project
    layers = {granularity: _drawn(project, granularity) for granularity in Granularity}
    drawn = [entry for layer in layers.values() for entry in layer]
    bank = rendered_bank(project)
    context = {
        "project": project,
        "membership": member,
        "layers": {name.value: _by_period(layer) for name, layer in layers.items() if layer},
        "drawn": drawn,
        "scale": max([FULL_WIDTH_TOKENS, *(entry.tokens for entry in drawn)]),
        "bank": bank,
        "left_out": _left_out(project, bank),
        "waiting": _waiting(request.user, project),
    }
    return render(request, "memory/bank.html", context)


def _drawn(project: Project, granularity: Granularity) -> list[Entry]:
    """The newest entries of a layer that the picture shows, newest first."""
    entries = project.entries.filter(granularity=granularity, state__in=DRAWN)
    return list(entries.newest_first()[:ENTRIES_A_LAYER])


def _by_period(layer: Iterable[Entry]) -> list[list[Entry]]:
    """The entries of a layer, those of one period together."""
    return [list(entries) for _, entries in groupby(layer, lambda entry: entry.period_key)]


def _left_out(project: Project, bank: Bank) -> list[tuple[Entry, str]]:
    """The entries that did not fit into the bank, newest first, each with its reason."""
    reasons = dict(bank.left_out[:ENTRIES_A_LAYER])
    entries = project.entries.filter(pk__in=reasons).newest_first()
    return [(entry, reasons[entry.pk]) for entry in entries]


def _waiting(user, project: Project) -> list[Waiting]:
    """The conversations to be summarised, the next one first."""
    cursors = Cursor.objects.waiting().filter(project=project).select_related("session")
    soonest = list(cursors.order_by("session__last_activity_at")[:WAITING_SHOWN])
    readable = set(
        sessions_for(user).filter(pk__in=[one.pk for one in soonest]).values_list("pk", flat=True)
    )
    idle = timedelta(minutes=project.idle_minutes)
    return [
        Waiting(
            cursor=cursor,
            title=cursor.session.label if cursor.pk in readable else "",
            due_at=cursor.session.last_activity_at + idle,
        )
        for cursor in soonest
    ]
