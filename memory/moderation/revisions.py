"""The present and earlier texts of an entry, and the comparison of two of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.layers import lines
from memory.layers.lines import Line
from memory.models import Entry, EntryRevision
from memory.moderation.diffs import diff_words

MAX_REVISIONS_SHOWN = 50


@dataclass(frozen=True)
class EntryText:
    """The present text of an entry or an earlier one."""

    revision: int
    summary: str
    lines: Sequence[Line]
    written_by: str
    written_at: datetime


def entry_texts(entry: Entry) -> list[EntryText]:
    """Return the texts of an entry, the present one first; none while it is withheld.

    For an entry of a private session, callers must show them only to the session's creator: earlier
    texts may contain passages that were removed before approval.
    """
    if entry.withheld:
        return []
    texts: list[Entry | EntryRevision] = [entry, *entry.revisions.all()[:MAX_REVISIONS_SHOWN]]
    return [
        EntryText(
            text.revision,
            text.summary,
            lines.read(text.lines, text.summary, entry.day),
            text.written_by,
            text.written_at,
        )
        for text in texts
    ]


def comparison(texts: list[EntryText], query: Mapping[str, Any]) -> dict[str, object]:
    """Return the context of templates/memory/_compare.html: two of `texts`, side by side.

    `query` may select them by revision as `from` and `to`.
    """
    if len(texts) < 2:
        return {"texts": texts}
    by_revision = {str(text.revision): text for text in texts}
    before = by_revision.get(query.get("from", ""), texts[1])
    after = by_revision.get(query.get("to", ""), texts[0])
    difference = diff_words(before.summary, after.summary)
    return {"texts": texts, "before": before, "after": after, "difference": difference}
