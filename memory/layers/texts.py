"""How the text of an entry is replaced, and what becomes of the one before."""

from datetime import datetime

from memory.layers import bank
from memory.models import Entry, EntryRevision

CHANGED = ("summary", "written_by", "written_at", "revision", "tokens", "withheld")


def rewrite(entry: Entry, summary: str, written_by: str, at: datetime) -> None:
    """Gives `entry` another text, in memory; its caller saves CHANGED.

    The earlier text is kept as a revision, unless it was withheld: then it and all before it may
    tell what was hidden or deleted, and go.
    """
    if entry.withheld:
        entry.revisions.all().delete()
    elif entry.summary != summary:
        EntryRevision.objects.create(
            project_id=entry.project_id,
            entry=entry,
            revision=entry.revision,
            summary=entry.summary,
            written_by=entry.written_by,
            written_at=entry.written_at,
        )
    if entry.summary != summary:
        entry.summary, entry.written_by, entry.written_at = summary, written_by, at
        entry.revision += 1
    entry.withheld = False
    entry.tokens = bank.item_tokens(entry.as_item())
