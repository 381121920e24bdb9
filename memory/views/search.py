"""What was said in a project, found again: the page of recall."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from chat.access import sessions_for
from memory.access import entries_for
from memory.facts import facts_for
from memory.forms import Everywhere, SearchForm
from memory.layers.periods import Granularity
from memory.models import Entry, SourceType
from memory.models.entries import EntryQuerySet
from memory.models.facts import FactQuerySet
from memory.recall import Scope, recall, relevance
from projects.access import membership
from projects.models import Membership, Project

RESULTS = 30
# Of summaries and facts: beside what was said, or alone.
SUMMARIES = 20
# Letters of words that are everywhere.
SHORTEST = 3


@login_required
@require_GET
def search(request: HttpRequest, slug: str) -> HttpResponse:
    """The excerpts that answer `q` best, or the latest, each with why it was found; and what is
    remembered and held to be so of it.
    """
    member = membership(request.user, slug)
    project = member.project
    with timezone.override(project.zone):
        form = SearchForm(project, request.GET)
        found = _found(member, form) if form.is_valid() else {}
        query = form.data.get("q", "")
        context: dict[str, Any] = {
            "project": project,
            "membership": member,
            "form": form,
            "query": query,
            "marked": _telling(query),
            **found,
        }
        status = 200 if form.is_valid() else 400
        return render(request, "memory/search.html", context, status=status)


def _found(member: Membership, form: SearchForm) -> dict[str, Any]:
    """What was said, what is remembered and what is held to be so, as far as it is asked for."""
    given = form.cleaned_data
    what, query = given["what"], given["q"].strip()
    scope = _scope(member, given)
    found: dict[str, Any] = {}
    if what in ("", Everywhere.SAID):
        found["results"] = recall(scope, query, limit=RESULTS)
    if given["session"]:
        chats = sessions_for(member.user).filter(project=member.project)
        found["within"] = chats.filter(pk=given["session"]).first()
    # A word by somebody, or of a chat, is neither a digest's nor a fact's.
    narrowed = given["author"] or given["session"]
    if query and not narrowed and what != Everywhere.SAID:
        if what != Everywhere.FACTS:
            found["entries"] = _remembered(member, scope, query, what)
        if what in ("", Everywhere.FACTS):
            found["facts"] = _held(member, query)
    return found


def _scope(member: Membership, given: Mapping[str, Any]) -> Scope:
    project, since, until = member.project, given["since"], given["until"]
    return Scope(
        project,
        member.user,
        since=since and _midnight(project, since),
        # The whole of that day, too.
        until=until and _midnight(project, until + timedelta(days=1)),
        author=given["author"] or None,
        session=given["session"],
    )


def _remembered(member: Membership, scope: Scope, query: str, layer: str) -> list[Entry]:
    """The summaries of conversations that answer best; of another layer, where that is named, the
    newest digests with one of the words, which have no excerpts.
    """
    if layer not in ("", Granularity.CONVERSATION):
        digests = _in(scope, entries_for(member).filter(granularity=layer))
        return list(digests.matching(_any_of(query)).newest_first()[:SUMMARIES])
    summaries = replace(scope, source_types=(SourceType.ENTRY,))
    found = recall(summaries, query, limit=SUMMARIES)
    best = [one.source for one in relevance.relevant(found, relevance.SUMMARY_THRESHOLD)]
    entries = entries_for(member).filter(withheld=False).in_bulk(best)
    return [entries[pk] for pk in best if pk in entries]


def _in(scope: Scope, digests: EntryQuerySet) -> EntryQuerySet:
    """Those whose time overlaps that of `scope`."""
    if scope.since:
        digests = digests.filter(last_source_at__gte=scope.since)
    if scope.until:
        digests = digests.filter(first_source_at__lt=scope.until)
    return digests


def _held(member: Membership, query: str) -> FactQuerySet:
    return facts_for(member).known().matching(_any_of(query)).newest_first()[:SUMMARIES]


def _any_of(query: str) -> str:
    """As websearch_to_tsquery takes it: any of the words that tell something."""
    return " OR ".join(_telling(query).split()) or query


def _telling(query: str) -> str:
    """The words of a question that are worth a mark where they are found."""
    words = re.findall(r"\w+", query)
    return " ".join(one for one in words if len(one) > SHORTEST or not one.isalpha())


def _midnight(project: Project, day) -> datetime:
    return datetime.combine(day, time.min, project.zone)
