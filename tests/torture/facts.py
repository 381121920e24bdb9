"""Invariants of facts. All facts of a random story have one topic."""

from collections import defaultdict
from itertools import pairwise

from memory.models import EntryStatus, Fact, FactSource
from tests.torture.marking_summariser import NAME, SUMMARY_LINE, words
from tests.torture.memory_acts import Team
from tests.torture.project_rows import UNSETTLED, Record


def assert_facts_have_sources(team: Team) -> None:
    """Each on a message that says it and counts, or on somebody's word; of what changes, one is so
    at a time; and none is what was forgotten.
    """
    known = list(Fact.objects.with_validity().order_by("valid_from"))
    sources = defaultdict(list)
    for source in FactSource.objects.select_related("message", "entry"):
        if not source.entry.withheld and source.entry.state != EntryStatus.HIDDEN:
            sources[source.fact_id].append(source)
    for fact in known:
        assert sources[fact.pk] or fact.by_hand, f"{fact.object} stands on nothing"
        for source in sources[fact.pk]:
            assert source.message.deleted_at is None, f"{fact.object} is of a deleted message"
            # What somebody changed says what they wrote.
            if source.entry.state != EntryStatus.STALE and fact.version == 1:
                assert fact.object in words(source.message.text), f"{fact.object} was not said"
    mentioned = {fact.object for fact in known}
    assert not mentioned & team.unremembered, "against a will"
    assert not mentioned & team.buried, "forgotten as a fact, and found again"
    for earlier, later in pairwise(known):
        assert earlier.until == later.valid_from or earlier.valid_from == later.valid_from
    assert all(fact.until is None for fact in known[-1:]), "the last one has ended"
    nobodys = Fact.objects.filter(sources=None, by_hand=False, earlier_of=None)
    assert not nobodys.exists(), "a fact of nobody's"


def are_found_in_every_message(team: Team, record: Record) -> None:
    """In those that the scribe wrote of, and whose entry is shown; unless somebody decided so."""
    known = {fact.object for fact in Fact.objects.with_validity()}
    for entry in record.entries:
        if entry.session_id and entry.written_by == NAME and entry.state not in UNSETTLED:
            mentioned = set() if entry.withheld else words(entry.summary, SUMMARY_LINE)
            assert mentioned - team.without_fact <= known, (
                f"{mentioned - known} of {entry} is no fact"
            )
