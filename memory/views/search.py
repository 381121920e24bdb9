"""The search page: messages, summaries, facts and files."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse

from chat.permissions import sessions_for
from memory.facts import facts_for
from memory.layers.periods import Granularity
from memory.models import Entry, SourceType
from memory.models.entries import EntryQuerySet
from memory.permissions import entries_for
from memory.prompt.files import MIN_FILE_SCORE
from memory.recall import RecallScope, filter_relevant, recall, relevant_facts
from memory.recall.fact_search import begun_within
from memory.recall.service import MAX_QUERY_CHARS
from memory.recall.speakers import speaker_filters
from memory.views import project_page, render_page
from memory.views.files import search_files
from memory.views.forms.facts import midnight
from memory.views.forms.search import FACTS, FILES, MESSAGES, MemorySearchForm
from projects.models import Membership

MAX_RESULTS = 30
# The maximum number of summaries, and the maximum number of facts.
MAX_SIDE_RESULTS = 20
# The maximum number of passages of files beside other results. Passages are long.
MAX_SIDE_PASSAGES = 5
# The minimum length of a word to search or highlight. Shorter words are too common, except numbers.
MIN_WORD_CHARS = 4
# The last day that has a next day.
MAX_DAY = date.max - timedelta(days=1)


@project_page()
def search(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show the best excerpts for `q`, or without `q` the latest, and matching summaries,
    facts and passages of files.
    """
    form = MemorySearchForm(member.project, request.GET)
    query = form.data.get("q", "")
    context = {"form": form, "query": query, "highlighted": _significant_words(query)}
    if form.is_valid():
        context |= _results(member, form.cleaned_data)
    return render_page(request, member, "search.html", context, 200 if form.is_valid() else 400)


def _results(member: Membership, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return results from the parts of memory that `what` selects."""
    what, query = data["what"], data["q"].strip()
    scope = _scope(member, data)
    results: dict[str, Any] = {}
    chats = sessions_for(member.user).filter(project=member.project)
    if what in ("", MESSAGES):
        excerpts = recall(scope, query, limit=MAX_RESULTS)
        by_id = chats.in_bulk({excerpt.session for excerpt in excerpts} - {None})
        results["results"] = [(excerpt, by_id.get(excerpt.session)) for excerpt in excerpts]
    if what == FILES:
        results["files"] = search_files(scope, query, MAX_RESULTS)
    elif not what and query and member.project.has_files:
        results["files"] = search_files(scope, query, MAX_SIDE_PASSAGES, MIN_FILE_SCORE)
    if data["session"]:
        results["within"] = chats.filter(pk=data["session"]).first()
    # These filters exclude digests and facts, which have neither an author nor a chat.
    if not query or data["author"] or data["session"] or what in (MESSAGES, FILES):
        return results
    words = " OR ".join(_significant_words(query).split()) or query
    if what != FACTS:
        results["entries"] = (
            _summaries(member, scope, query)
            if what in ("", Granularity.CONVERSATION)
            else _digests(scope, entries_for(member).filter(granularity=what), words)
        )
    if what in ("", FACTS):
        facts = begun_within(scope, facts_for(member).with_validity())
        results["facts"] = relevant_facts(
            member.project, facts, query, MAX_SIDE_RESULTS, scope.booked_on
        )
    return results


def _scope(member: Membership, data: Mapping[str, Any]) -> RecallScope:
    zone, since, until = member.project.zone, data["since"], data["until"]
    return RecallScope(
        member.project,
        member.user,
        since=since and midnight(since, zone),
        # The day `until` is included.
        until=until and midnight(min(until, MAX_DAY) + timedelta(days=1), zone),
        **speaker_filters(data["author"]),
        session=data["session"],
    )


def _summaries(member: Membership, scope: RecallScope, query: str) -> list[Entry]:
    """Return the conversation entries that best answer the query."""
    scope = replace(scope, source_types=(SourceType.ENTRY,))
    results = recall(scope, query, limit=MAX_SIDE_RESULTS)
    ids = [result.source for result in filter_relevant(results)]
    entries = entries_for(member).filter(withheld=False).in_bulk(ids)
    return [entries[pk] for pk in ids if pk in entries]


def _digests(scope: RecallScope, digests: EntryQuerySet, words: str) -> list[Entry]:
    """Return the newest digests that contain one of the words. Recall does not index digests."""
    if scope.since:
        digests = digests.filter(last_source_at__gte=scope.since)
    if scope.until:
        digests = digests.filter(first_source_at__lt=scope.until)
    return list(digests.matching(words).newest_first()[:MAX_SIDE_RESULTS])


def _significant_words(query: str) -> str:
    words = re.findall(r"\w+", query[:MAX_QUERY_CHARS])
    return " ".join(word for word in words if len(word) >= MIN_WORD_CHARS or not word.isalpha())
