"""Backfill of the lines of entries that were written by a version of Strata without lines.

Runs in batches while the server is in use. Each batch is one transaction. If a run ends early, the
next run continues it. It also finds entries that an older process writes in the meantime.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from django.db import transaction
from django.db.models import QuerySet

from chat.conversations.branches import MessageNode
from chat.models import Session
from memory.layers import lines
from memory.layers.coverage import active_path, messages_of
from memory.layers.lines import Line
from memory.layers.summarising.base import EXTRACTIVE
from memory.models import Entry
from memory.models.entries import CONVERSATION
from memory.moderation import entry_operations

BATCH_SIZE = 100
# Marks the end of a quotation that was cut.
CUT = "…"


def entries_without_lines() -> QuerySet[Entry]:
    """Return the entries that have text but no lines."""
    return Entry.objects.filter(lines=[]).exclude(summary="")


def add_lines(seconds: float) -> bool:
    """Split the texts of entries into lines, for at most `seconds`. Return whether all are done.

    A line that the extractive summariser quoted gets the message that contains it. A line that a
    model wrote gets no message, because it may be based on the whole entry. Digests are processed
    after all conversations. Extractive digests are scheduled to be selected again from the lines,
    without a model.
    """
    end = time.monotonic() + seconds
    for rows in (
        entries_without_lines().filter(granularity=CONVERSATION),
        entries_without_lines().exclude(granularity=CONVERSATION),
    ):
        while _add_to_batch(rows):
            if time.monotonic() > end:
                return False
    return True


@transaction.atomic
def _add_to_batch(rows: QuerySet[Entry]) -> bool:
    """Add the lines of BATCH_SIZE entries; return whether there were any."""
    # Skip locked entries, which are being changed. The next run adds lines to them if necessary.
    locked = rows.select_related("session").select_for_update(
        skip_locked=True, of=("self",), no_key=True
    )
    # By session, so that the path of each is read once.
    entries = list(locked.order_by("session_id", "pk")[:BATCH_SIZE])
    read_path = lru_cache(maxsize=1)(active_path)
    for entry in entries:
        found = entry.read_lines()
        if entry.written_by == EXTRACTIVE and entry.granularity == CONVERSATION:
            found = _with_messages(entry, found, read_path)
        # A text without a bullet gets one empty line, so that it is not selected again.
        entry.lines = lines.to_json(found or [Line("", entry.day)])
    Entry.objects.bulk_update(entries, ["lines"])
    for entry in entries:
        is_digest = entry.granularity != CONVERSATION
        if is_digest and entry.written_by == EXTRACTIVE and not entry.note:
            entry_operations.schedule_rewrite(entry)
            # Its children have the same texts as before, so without this it would not be rewritten.
            Entry.objects.filter(project=entry.project_id, pk=entry.pk).update(sources_hash="")
    return bool(entries)


def _with_messages(
    entry: Entry, found: list[Line], read_path: Callable[[Session], Sequence[MessageNode]]
) -> list[Line]:
    """Return the quotations, each with the message that contains it. `read_path` is that of
    `messages_of`.
    """
    rows = messages_of(entry, read_path).values_list("pk", "text")
    messages = [(pk, " ".join(text.split())) for pk, text in rows]
    result = []
    for line in found:
        quoted = line.text.removesuffix(CUT)
        sources = [pk for pk, text in messages if quoted and quoted in text][:1]
        result.append(
            Line(line.text, line.day, line.speaker, tuple(sources), line.score)
            if line.speaker
            else line
        )
    return result
