"""What was done, as a reader of the project may know it: with links to what they may open."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from chat.access import sessions_for
from chat.models import Session
from memory.access import entries_for
from memory.facts import facts_for
from memory.models import Activity, Entry, Fact
from projects.models import Membership

ROWS_A_PAGE = 50


@dataclass(frozen=True)
class Row:
    """An act, and what it was done to as far as that is still there and the reader may open it."""

    act: Activity
    entry: Entry | None
    session: Session | None
    fact: Fact | None = None


def rows(member: Membership, activities: QuerySet[Activity], most: int = ROWS_A_PAGE) -> list[Row]:
    """The newest of `activities`: four queries at most, however many they are."""
    acts = list(activities.select_related("by", "whom").order_by("-id")[:most])
    entries = entries_for(member).in_bulk(_named(acts, "entry_id"))
    readable = sessions_for(member.user).filter(project=member.project)
    sessions = readable.in_bulk(_named(acts, "session_id"))
    facts = facts_for(member).current().in_bulk(_named(acts, "fact_id"))
    return [
        Row(act, entries.get(act.entry_id), sessions.get(act.session_id), facts.get(act.fact_id))
        for act in acts
    ]


def _named(acts: Sequence[Activity], column: str) -> set:
    return {getattr(act, column) for act in acts} - {None}
