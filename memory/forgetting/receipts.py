"""What was removed from where, and a search that finds nothing of it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.search import SearchQuery
from django.db.models import QuerySet

from chat.models import Message, Session
from chat.search import WORDS
from memory.forgetting.found import Found
from memory.models import Activity, Block, Entry, EntryRevision, Fact, State, entries, facts
from projects.models import Project

# Phrases of what goes that are looked for afterwards, and the words of each. Seven words in a row
# are rarely said twice by chance; fewer, in a text that has no more.
MOST_PHRASES = 20
PHRASE_WORDS = 7
FEWEST_WORDS = 3
# Of what is listed one by one.
MOST_LISTED = 100


@dataclass(frozen=True)
class Receipt:
    """`removed`: how many things went, by store. `saw_it`: replies that stay and were told
    something of it. `found`: where the same words still stand, said by somebody else or again.
    """

    removed: Mapping[str, int]
    awaiting_rewrite: int
    withheld: Sequence[UUID]
    saw_it: Sequence[UUID]
    phrases: int
    found: Sequence[tuple[str, UUID]]
    id: UUID | None = None
    at: datetime | None = None
    # Just after; whoever looks later asks anew.
    awaiting_files: int = 0

    def signed(self, act: Activity) -> "Receipt":
        """With the id and the moment under which it is on the record."""
        return replace(self, id=act.pk, at=act.at)

    def as_answer(self) -> dict[str, Any]:
        """What whoever had it forgotten is told: the record, its id and moment, and what is left to
        be done.
        """
        told = {"id": self.id, "at": self.at, "awaiting_files": self.awaiting_files}
        return told | self.as_json()

    def as_json(self) -> dict[str, Any]:
        """Numbers and ids: no text."""
        return {
            "removed": dict(self.removed),
            "awaiting_rewrite": self.awaiting_rewrite,
            "withheld": [str(pk) for pk in self.withheld],
            "saw_it": [str(pk) for pk in self.saw_it],
            "search": {
                "phrases": self.phrases,
                "found": [{"where": where, "id": str(pk)} for where, pk in self.found],
            },
        }


def draw_up(
    project: Project,
    found: Found,
    removed: Mapping[str, int],
    phrases: Sequence[str],
    told: Collection[UUID],
) -> Receipt:
    """The receipt of what was `found` and is gone now. Looks for `phrases` of it; `told` are the
    replies that stay and were told of it.
    """
    waiting = Entry.objects.filter(pk__in=found.withheld)
    listed = sorted(found.withheld)[:MOST_LISTED]
    return Receipt(
        removed=removed,
        awaiting_rewrite=waiting.filter(state=State.STALE).count(),
        withheld=listed,
        saw_it=sorted(told)[:MOST_LISTED],
        phrases=len(phrases),
        found=_still_there(project, found, phrases),
    )


def phrases_of(project: Project, found: Found) -> list[str]:
    """Some phrases of what is to go, for the search afterwards."""
    messages = Message.objects.filter(project=project, pk__in=_some(found.messages))
    entries = Entry.objects.filter(pk__in=_some(found.entries | found.withheld))
    texts = [
        *messages.values_list("text", flat=True)[:MOST_PHRASES],
        *entries.values_list("summary", flat=True)[:MOST_PHRASES],
        *Block.objects.filter(pk__in=_some(found.blocks)).values_list("content", flat=True),
        *(fact.text for fact in Fact.objects.filter(pk__in=_some(found.facts))),
    ]
    phrases = (phrase(text[:20_000]) for text in texts)
    return [one for one in dict.fromkeys(phrases) if one][:MOST_PHRASES]


def phrase(text: str) -> str:
    """PHRASE_WORDS words in a row from the line of `text` that has the most; empty for less than
    FEWEST_WORDS.
    """
    lines = [re.findall(r"\w+", line) for line in text.splitlines()]
    longest = max(lines, key=len, default=[])
    middle = max(0, (len(longest) - PHRASE_WORDS) // 2)
    words = longest[middle : middle + PHRASE_WORDS]
    return " ".join(words) if len(words) >= FEWEST_WORDS else ""


def _some(ids: Iterable[UUID]) -> list[UUID]:
    """At most MOST_PHRASES of `ids`, from all over their time."""
    ordered = sorted(ids)
    step = max(1, len(ordered) // MOST_PHRASES)
    return ordered[::step][:MOST_PHRASES]


def _still_there(project: Project, found: Found, phrases: Sequence[str]) -> list[tuple[str, UUID]]:
    """Where a phrase still stands. Every search but that of titles has its index."""
    seen: dict[tuple[str, UUID], None] = {}
    for one in phrases:
        query = SearchQuery(one, config="simple", search_type="phrase")
        places: list[tuple[str, QuerySet]] = [
            ("message", Message.objects.alias(words=WORDS)),
            ("entry", Entry.objects.alias(words=entries.WORDS)),
            ("revision", EntryRevision.objects.alias(words=entries.REVISED_WORDS)),
            ("fact", Fact.objects.filter(earlier_of=None).alias(words=facts.WORDS)),
        ]
        for where, rows in places:
            there = rows.filter(project=project, words=query).values_list("pk", flat=True)
            seen |= dict.fromkeys((where, pk) for pk in there[:MOST_LISTED])
        titles = Session.objects.filter(pk__in=found.touched, title__icontains=one)
        seen |= dict.fromkeys(("title", pk) for pk in titles.values_list("pk", flat=True))
    return list(seen)[:MOST_LISTED]
