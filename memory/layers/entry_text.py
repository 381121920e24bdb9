"""The text of an entry: replace it and keep the previous text as a revision, or erase all texts."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F

from chat.conversations.branches import MessageNode
from chat.models import Session, Visibility
from memory.layers import bank, coverage, losses
from memory.layers.lines import Line, as_text
from memory.models import Entry, EntryRevision, ReviewReason
from memory.models.entries import CONVERSATION
from memory.moderation.redaction import RedactedPhrases

# The fields that `replace_text` changes.
TEXT_FIELDS = ("summary", "lines", "written_by", "written_at", "revision", "tokens", "withheld")


def replace_text(
    entry: Entry, lines: Sequence[Line], written_by: str, at: datetime, text: str | None = None
) -> None:
    """Set the lines of `entry` without saving it; the caller saves `TEXT_FIELDS`. `text` is a text
    that somebody wrote. By default, the text is rendered from the lines, without the words that
    were redacted in the entry. Set its losses first: these words are removed from them too.

    The previous text becomes a revision. If the entry was withheld, all its earlier texts are
    deleted instead, because they may contain hidden or deleted text.
    """
    if text is None:
        redacted = RedactedPhrases.of(entry)
        lines = redacted.without_in_lines(lines)
        entry.losses = _without(redacted, entry.losses)
    summary = as_text(lines) if text is None else text
    days = [line.day for line in lines]
    # The bank shows the days of the lines.
    is_changed = entry.summary != summary or [line.day for line in entry.read_lines()] != days
    if entry.withheld:
        entry.revisions.filter(project=entry.project_id).delete()
    elif is_changed:
        EntryRevision.objects.create(
            project_id=entry.project_id,
            entry=entry,
            revision=entry.revision,
            summary=entry.summary,
            lines=entry.lines,
            written_by=entry.written_by,
            written_at=entry.written_at,
        )
    if entry.withheld or is_changed:
        entry.written_by, entry.written_at = written_by, at
        entry.revision += 1
    entry.set_lines(lines, summary)
    entry.withheld = False
    entry.tokens = bank.item_tokens(entry.as_item())


def set_losses(
    entry: Entry, read_path: Callable[[Session], Sequence[MessageNode]] | None = None
) -> None:
    """Set `losses` and `particulars` of `entry` from its text and its sources, without saving it.

    The entry of a file has none. `read_path` is that of `messages_of`.
    """
    if entry.granularity == CONVERSATION:
        messages = coverage.messages_of(entry, read_path).values_list("text", flat=True)
        audit = losses.audit_messages(messages, entry.summary)
    else:
        children = Entry.objects.in_layers().filter(
            project=entry.project_id, parent=entry, withheld=False
        )
        texts = [(child.label, child.summary) for child in children.select_related("session")]
        audit = losses.audit(texts, entry.summary)
    listed = audit.listed()
    if entry.session is not None and entry.session.visibility == Visibility.PRIVATE:
        listed = losses.without_texts(listed)
    entry.losses, entry.particulars = _without(RedactedPhrases.of(entry), listed), audit.held


def _without(redacted: RedactedPhrases, listed: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return the losses `listed` without those that contain redacted words."""
    return [
        loss
        for loss in listed
        if loss["kind"] == losses.MORE or not redacted.contained_in(loss["text"])
    ]


def erase_texts(projects: Collection[UUID], ids: Collection[UUID]) -> int:
    """Empty the texts of the entries `ids` of `projects`. Return how many revisions were deleted.

    A correction that somebody wrote into a digest may be based on the erased text. It is erased
    too, and the digest waits for review after it is rewritten.
    """
    removed, _ = EntryRevision.objects.filter(project__in=projects, entry__in=ids).delete()
    entries = Entry.objects.filter(project__in=projects, pk__in=ids)
    entries.exclude(note="").update(waits_because=ReviewReason.SOURCES)
    entries.update(
        summary="",
        lines=[],
        note="",
        losses=[],
        particulars=0,
        sources_hash="",
        tokens=0,
        # The next text gets a new revision, even if it is equal to the erased text.
        revision=F("revision") + 1,
        withheld=True,
    )
    return removed
