"""What a project remembers, as a picture of its layers, and what still waits to be remembered."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memory.access import entries_for, may_decide, may_forget
from memory.layers.history import bank_as_of
from memory.layers.rendering import rendered_bank
from memory.models import Entry, State
from memory.schedule import waiting
from memory.views import lineage, picture
from projects.access import membership
from projects.models import Membership

PROPOSED_SHOWN = 20
HIDDEN_SHOWN = 50


@login_required
@require_GET
def memory(request: HttpRequest, slug: str) -> HttpResponse:
    """The layers of a project, the text they come to, what did not fit and what is to come.

    `at` shows them as they stood at the end of a day; `part` gives the picture alone; `tree` has
    them as a tree instead, down to the messages.
    """
    member = membership(request.user, slug)
    project = member.project
    days = picture.days(project, request.GET.get("at", ""))
    context: dict[str, Any] = {"project": project, "membership": member, "days": days}
    context |= _today(request, member) if days.is_today else _then(member, days)
    if "tree" in request.GET:
        context["tree"] = _tree(member, context["picture"].drawn)
    template = "memory/_picture.html" if "part" in request.GET else "memory/bank.html"
    return render(request, template, context)


def _today(request: HttpRequest, member: Membership) -> dict[str, Any]:
    project = member.project
    shown = picture.now(member)
    bank = rendered_bank(project)
    return {
        "picture": shown,
        "bank": bank,
        "left_out": _left_out(member, bank.left_out),
        "waiting": waiting(request.user, project),
        "proposed": _proposed(member, shown) if member.may_write else [],
        "hidden": _hidden(member) if member.may_write else [],
        "may_forget": may_forget(member),
    }


def _then(member: Membership, days: picture.Days) -> dict[str, Any]:
    moment = picture.end_of(days.shown, member.project)
    bank = bank_as_of(member.project, moment)
    return {
        "picture": picture.then(member, moment),
        "bank": bank,
        "left_out": _left_out(member, bank.left_out),
    }


def _tree(member: Membership, drawn: Sequence[picture.Block]) -> list[lineage.Source]:
    """The drawn entries with what they were made of, the newest layer first."""
    entries = [block.entry for block in drawn]
    spoken = {one.entry.pk: one for one in lineage.leaves(member, filter(_is_of_a_chat, entries))}
    made_of = lineage.forest(member, (one for one in entries if not _is_of_a_chat(one)))
    return [spoken.get(one.pk) or lineage.Source(one, made_of[one.pk]) for one in entries]


def _is_of_a_chat(entry: Entry) -> bool:
    return entry.session_id is not None


def _proposed(member: Membership, shown: picture.Picture) -> list[tuple[Entry, bool]]:
    """What waits for review, and for each whether the member decides on it."""
    waits = [block.entry for block in shown.drawn if block.state == State.PROPOSED]
    return [(entry, may_decide(member, entry)) for entry in waits[:PROPOSED_SHOWN]]


def _hidden(member: Membership) -> list[Entry]:
    entries = entries_for(member).filter(state=State.HIDDEN)
    return list(entries.newest_first()[:HIDDEN_SHOWN])


def _left_out(member: Membership, listed: Sequence[tuple[UUID, str]]) -> list[tuple[Entry, str]]:
    """The entries that did not fit into the bank, newest first, each with its reason."""
    reasons = dict(listed[: picture.ENTRIES_A_LAYER])
    entries = entries_for(member).filter(pk__in=reasons).newest_first()
    return [(entry, reasons[entry.pk]) for entry in entries]
