"""How the text of an entry is replaced, and what becomes of the one before."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db.models import F

from memory.layers import bank
from memory.models import Entry, EntryRevision, Waiting

CHANGED = ("summary", "written_by", "written_at", "revision", "tokens", "withheld")


def rewrite(entry: Entry, summary: str, written_by: str, at: datetime) -> None:
    """Gives `entry` another text, in memory; its caller saves CHANGED.

    The earlier text is kept as a revision, unless it was withheld: then it and all before it may
    tell what was hidden or deleted, and go.
    """
    if entry.withheld:
        entry.revisions.filter(project=entry.project_id).delete()
    elif entry.summary != summary:
        EntryRevision.objects.create(
            project_id=entry.project_id,
            entry=entry,
            revision=entry.revision,
            summary=entry.summary,
            written_by=entry.written_by,
            written_at=entry.written_at,
        )
    if entry.withheld or entry.summary != summary:
        entry.summary, entry.written_by, entry.written_at = summary, written_by, at
        entry.revision += 1
    entry.withheld = False
    entry.tokens = bank.item_tokens(entry.as_item())


def blank(projects: Collection[UUID], ids: Collection[UUID]) -> int:
    """Empties the texts of entries of `projects`, by their ids, and removes all earlier ones;
    returns how many those were.

    What somebody wrote into a digest by hand may rest on what goes, and goes too: somebody is to
    look at it when it is written anew.
    """
    removed, _ = EntryRevision.objects.filter(project__in=projects, entry__in=ids).delete()
    entries = Entry.objects.filter(project__in=projects, pk__in=ids)
    entries.exclude(note="").update(waits_because=Waiting.SOURCES)
    entries.update(
        summary="",
        note="",
        losses=[],
        particulars=0,
        sources_hash="",
        tokens=0,
        # Whatever is written next is another text, even if it reads the same.
        revision=F("revision") + 1,
        withheld=True,
    )
    return removed
