"""The texts that an entry had, and how two of them differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.diffs import by_words
from memory.models import Entry

REVISIONS_SHOWN = 50


@dataclass(frozen=True)
class Text:
    """One of the texts that an entry had or has."""

    revision: int
    summary: str
    written_by: str
    written_at: datetime


def texts_of(found: Entry) -> list[Text]:
    """Its texts, that of now first; none while it is withheld.

    Those from a private session are for who began it: they may tell what was taken out before the
    entry was approved.
    """
    if found.withheld:
        return []
    now = Text(found.revision, found.summary, found.written_by, found.written_at)
    earlier = found.revisions.all()[:REVISIONS_SHOWN]
    return [
        now,
        *(Text(one.revision, one.summary, one.written_by, one.written_at) for one in earlier),
    ]


def compared(texts: list[Text], asked: Mapping[str, Any]) -> dict[str, object]:
    """What templates/memory/_compare.html shows: two of `texts`, side by side."""
    if len(texts) < 2:
        return {"texts": texts}
    by_revision = {str(text.revision): text for text in texts}
    before = by_revision.get(asked.get("from", ""), texts[1])
    after = by_revision.get(asked.get("to", ""), texts[0])
    difference = by_words(before.summary, after.summary)
    return {"texts": texts, "before": before, "after": after, "difference": difference}
