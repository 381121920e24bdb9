"""Operations on entries: edit, redact, pin, hide, withhold and schedule rewrites.

Operations by users are recorded in the activity log. `pin` and edits of pinned entries lock the
project first, because pins are counted per project. All operations lock rows from the entry upward,
in the same order as in updates of the layers, so that the two cannot deadlock
(docs/architecture.md, "Order of locks").
"""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Case, QuerySet, Sum, When
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models import Visibility
from memory.facts import extraction
from memory.layers import coverage, entry_text, lines, losses
from memory.layers.periods import Granularity
from memory.models import (
    ActivityVerb,
    Chunk,
    Entry,
    EntryRevision,
    EntryStatus,
    ModerationReason,
    RenderedBank,
    ReviewReason,
    SourceType,
)
from memory.models.activity import record_activity, record_entry_activity
from memory.models.cursors import mark_layers_changed
from memory.moderation.redaction import REDACTION_MARK, remember_phrase
from projects.core.errors import InvalidInputError
from projects.core.text import storable
from projects.models import Project, delete_rows

# The maximum share of the bank's budget for pinned entries (docs/memory.md, "Filling the budget").
PINNED_SHARE = 0.5
# The states of entries that are not part of the layers.
OUTSIDE_LAYERS = (EntryStatus.HIDDEN, EntryStatus.PROPOSED)
# The value of `Entry.sources_hash` if a source changed while the entry was outside the layers. The
# entry is rewritten when it enters the layers again.
OUTDATED = "outdated"
MAX_SUMMARY_CHARS = 5_000


@transaction.atomic
def edit(entry: Entry, summary: str, by, reason: str = ModerationReason.OTHER) -> Entry:
    """Replace the text of `entry`. The previous text is saved as a revision.

    The new text of a digest is also saved as its note. The note is one of the sources of the
    digest, so that a rewrite does not lose the edit. The digest above is scheduled for a rewrite.
    Raises InvalidInputError if the text is withheld, or if the new text is empty or too long.
    """
    summary = storable(summary)
    if not summary.strip():
        raise InvalidInputError(_("Enter some text."), field="summary")
    if entry.pinned:
        _lock_pins(entry.project_id)
    entry = _locked(entry)
    if entry.withheld:
        message = _("This text is hidden until it is rewritten.")
        raise InvalidInputError(message, field="summary")
    if summary == entry.summary:
        return entry
    # A longer text of a model can be shortened step by step.
    if len(summary) > max(MAX_SUMMARY_CHARS, len(entry.summary)):
        message = _("This text can have at most %(most)s characters.")
        raise InvalidInputError(message % {"most": MAX_SUMMARY_CHARS}, field="summary")
    new = lines.edited(entry.read_lines(), summary, entry.day)
    entry_text.replace_text(entry, new, by.get_username(), timezone.now(), summary)
    entry_text.set_losses(entry)
    if entry.granularity != Granularity.CONVERSATION:
        entry.note = summary
    if entry.pinned:
        _check_pinned_tokens(entry, field="summary")
    entry.save(update_fields=[*entry_text.TEXT_FIELDS, "note", "losses", "particulars"])
    schedule_rewrite(entry.parent)
    _record(entry, ActivityVerb.EDITED, by, reason)
    return entry


@transaction.atomic
def redact(entry: Entry, passage: str, by, reason: str = ModerationReason.PRIVATE) -> Entry:
    """Remove every occurrence of `passage` from the entry's text and its revisions. When the entry
    is rewritten, the same words are removed again.

    The digests above may contain the passage too, so they are withheld until they are rewritten.
    Raises InvalidInputError if the text does not contain the passage.
    """
    entry = _locked(entry)
    if entry.withheld or not passage.strip() or passage not in entry.summary:
        raise InvalidInputError(_("This text does not contain these words."))
    remember_phrase(entry, entry.summary, passage)
    redacted = entry.summary.replace(passage, REDACTION_MARK)
    new = lines.replaced(entry.read_lines(), passage, REDACTION_MARK, redacted, entry.day)
    entry_text.replace_text(entry, new, by.get_username(), timezone.now(), redacted)
    entry.note = entry.note.replace(passage, REDACTION_MARK)
    entry.losses = [
        loss for loss in entry.losses if loss["kind"] == losses.MORE or passage not in loss["text"]
    ]
    entry.save(update_fields=[*entry_text.TEXT_FIELDS, "note", "losses"])
    revisions = entry.revisions.filter(project=entry.project_id, summary__contains=passage)
    for revision in revisions:
        summary = revision.summary.replace(passage, REDACTION_MARK)
        earlier = lines.read(revision.lines, revision.summary, entry.day)
        new = lines.replaced(earlier, passage, REDACTION_MARK, summary, entry.day)
        revision.summary, revision.lines = summary, lines.to_json(new)
        revision.save(update_fields=["summary", "lines"])
    withhold(_parents_of([entry]), for_good=True)
    chunks = Chunk.objects.filter(project=entry.project_id)
    delete_rows(chunks.filter(source_type=SourceType.ENTRY, source=entry.pk))
    extraction.redact(entry, passage)
    RenderedBank.empty(entry.project_id)
    _record(entry, ActivityVerb.REDACTED, by, reason)
    return entry


@transaction.atomic
def request_rewrite(entry: Entry, by, reason: str = ModerationReason.OTHER) -> Entry:
    """Schedule a rewrite from the sources in the next cycle. The current text stays until then.

    Raises InvalidInputError for a proposed or hidden entry, and for one without sources.
    """
    entry = _locked(entry)
    if entry.state in OUTSIDE_LAYERS:
        raise InvalidInputError(_("Review this memory first. It cannot be rewritten before."))
    if coverage.without_sources(_rows([entry])).exists():
        message = _("This memory was imported without its sources. It cannot be rewritten.")
        raise InvalidInputError(message)
    entry.sources_hash, entry.state = "", EntryStatus.STALE
    entry.save(update_fields=["sources_hash", "state"])
    _record(entry, ActivityVerb.REWRITE_REQUESTED, by, reason)
    return entry


@transaction.atomic
def pin(entry: Entry, pinned: bool, by=None, reason: str = ModerationReason.OTHER) -> Entry:
    """Pin `entry` to the bank, or unpin it. A pinned entry has no parent.

    Raises InvalidInputError if the pinned entries would take more than half of the budget, or if
    the entry to pin is proposed, hidden or stale.
    """
    _lock_pins(entry.project_id)
    entry = _locked(entry)
    if pinned == entry.pinned:
        return entry
    if pinned:
        if entry.state not in (EntryStatus.LIVE, EntryStatus.FADED, EntryStatus.ABSORBED):
            message = _("Only memories in use can be pinned. State of this memory: %(state)s.")
            raise InvalidInputError(message % {"state": entry.get_state_display()}, field="pinned")
        _check_pinned_tokens(entry, field="pinned")
        entry.state = EntryStatus.LIVE
    former_parent = entry.parent
    entry.pinned, entry.parent = pinned, None
    entry.save(update_fields=["pinned", "parent", "state"])
    schedule_rewrite(former_parent)
    _record(entry, ActivityVerb.PINNED if pinned else ActivityVerb.UNPINNED, by, reason)
    return entry


@transaction.atomic
def set_hidden(entry: Entry, hidden: bool, by=None, reason: str = ModerationReason.OTHER) -> Entry:
    """Hide `entry`, or make a hidden or proposed entry live.

    A hidden entry has no parent and is not pinned. Every digest above it is withheld until it is
    rewritten without the entry. A rejected entry of a private session is also withheld, because
    only its creator has read it and others can see the list of hidden entries.
    """
    entry = _locked(entry)
    was_proposed = entry.state == EntryStatus.PROPOSED
    if hidden and entry.state != EntryStatus.HIDDEN:
        is_private = entry.session and entry.session.visibility == Visibility.PRIVATE
        if entry.state == EntryStatus.STALE:
            entry.sources_hash = OUTDATED
        entry.state, entry.parent, entry.pinned = EntryStatus.HIDDEN, None, False
        entry.waits_because = ""
        entry.save(update_fields=["state", "parent", "pinned", "waits_because", "sources_hash"])
        withhold(_parents_of([entry]))
        if was_proposed and is_private:
            withhold(_rows([entry]))
            entry.withheld = True
        _record(entry, ActivityVerb.REJECTED if was_proposed else ActivityVerb.HIDDEN, by, reason)
    elif not hidden and entry.state in OUTSIDE_LAYERS:
        is_outdated = entry.withheld or entry.sources_hash == OUTDATED
        entry.state = EntryStatus.STALE if is_outdated else EntryStatus.LIVE
        entry.waits_because = ""
        entry.save(update_fields=["state", "waits_because"])
        # The digest replaces its children in the bank from now on.
        children = entry.children.filter(project=entry.project_id)
        shown = children.filter(state__in=(EntryStatus.LIVE, EntryStatus.FADED))
        # Do not wait for children, because other code locks them before their digest. The next
        # update of the layers absorbs those that are locked.
        free = shown.select_for_update(skip_locked=True).values_list("pk", flat=True)
        children.filter(pk__in=list(free)).update(state=EntryStatus.ABSORBED)
        extraction.approve_facts_of(entry)
        _record(entry, ActivityVerb.APPROVED if was_proposed else ActivityVerb.SHOWN, by, reason)
    return entry


def send_to_review(entries: QuerySet[Entry], because: ReviewReason) -> None:
    """Send `entries` to review, except hidden ones, and withhold the digests above them.

    A withheld entry has no text to review. It is sent to review when it is rewritten. `entries`
    must be filtered by project.
    """
    locked = lock(entries.exclude(state=EntryStatus.HIDDEN))
    rows = _rows(locked)
    rows.filter(state=EntryStatus.STALE, withheld=False).update(sources_hash=OUTDATED)
    rows.update(waits_because=because, parent=None, pinned=False)
    rows.filter(withheld=False).update(state=EntryStatus.PROPOSED)
    withhold(_parents_of(locked))
    for entry in locked:
        mark_layers_changed(entry.project_id)
        record_activity(entry.project_id, ActivityVerb.PROPOSED, entry_id=entry.pk, reason=because)


def _locked(entry: Entry) -> Entry:
    rows = Entry.objects.select_for_update(of=("self",)).select_related("session", "parent")
    return rows.get(project=entry.project_id, pk=entry.pk)


def _record(entry: Entry, verb: ActivityVerb, by, reason: str) -> None:
    mark_layers_changed(entry.project_id)
    record_entry_activity(entry, verb, by=by, reason=reason, related=ancestors(entry))


def ancestors(entry: Entry) -> list[UUID]:
    """Return the ids of the digests above `entry`, the nearest first; at most three."""
    ids: list[UUID] = []
    parent = entry.parent_id
    while parent is not None:
        ids.append(parent)
        rows = Entry.objects.filter(project=entry.project_id, pk=parent)
        parent = rows.values_list("parent", flat=True).first()
    return ids


def _lock_pins(project_id: UUID) -> None:
    """Serialise changes of pins. Call this before locking an entry, as forgetting does."""
    Project.objects.select_for_update(no_key=True).get(pk=project_id)


def _check_pinned_tokens(entry: Entry, field: str) -> None:
    """Raise InvalidInputError if the pinned entries and `entry` together exceed their share."""
    others = Entry.objects.filter(project=entry.project_id, pinned=True).exclude(pk=entry.pk)
    taken = others.aggregate(tokens=Sum("tokens", default=0))["tokens"] + entry.tokens
    limit = int(entry.project.bank_max_tokens * PINNED_SHARE)
    if taken > limit:
        message = _(
            "Pinned memories can use half of the budget, %(most)s tokens. This would be %(taken)s."
        )
        raise InvalidInputError(message % {"most": limit, "taken": taken}, field=field)


def schedule_rewrite(entry: Entry | None) -> None:
    """Mark `entry` stale and schedule an update of the layers. Its text stays until the rewrite."""
    if entry is not None:
        mark_stale(entry)
        mark_layers_changed(entry.project_id)


def mark_stale(entry: Entry) -> None:
    """Mark `entry` stale without scheduling an update of the layers.

    A hidden or proposed entry keeps its state. It is rewritten when it enters the layers.
    """
    rows = _rows([entry])
    rows.filter(state__in=OUTSIDE_LAYERS).update(sources_hash=OUTDATED)
    rows.exclude(state__in=OUTSIDE_LAYERS).update(state=EntryStatus.STALE)


def withhold(entries: QuerySet[Entry], for_good: bool = False, keep_earlier: bool = False) -> None:
    """Withhold `entries` and the digests above them until they are rewritten.

    A digest that lost one of these entries, because the entry was pinned or hidden, is withheld
    too: its text may still contain the entry's text. If the digest was already rewritten without
    the entry, the next update of the layers makes it visible again without a model call.

    A proposed entry leaves review, because there is no text to read. It keeps `waits_because`, and
    is proposed again when it is rewritten.

    Revisions are deleted, because they may contain the withheld text. `keep_earlier` is for deleted
    sessions, which can be restored: the entries and the digests that contain them keep their
    revisions. They are shown again at the same time, so their revisions reveal nothing. The
    revisions of digests that lost an entry are deleted in this case too. With `for_good`, the
    current texts are deleted too.

    Rows are locked from the finest layer upward and in the order of ids, as in all other code.
    """
    found = dict(entries.order_by().values_list("pk", "project"))
    projects, above, present = set(found.values()), set(found), set(found)
    touched: set[UUID] = set()
    for layer in Granularity:
        rows = Entry.objects.filter(project__in=projects, pk__in=above, granularity=layer)
        level = lock(rows)
        touched |= {entry.pk for entry in level}
        present |= {entry.parent_id for entry in level if entry.pk in present and entry.parent_id}
        above |= set(_parents_of(level).values_list("pk", flat=True))
    rows = Entry.objects.filter(project__in=projects, pk__in=touched)
    if for_good:
        entry_text.erase_texts(projects, touched)
    else:
        without_revisions = touched - present if keep_earlier else touched
        EntryRevision.objects.filter(project__in=projects, entry__in=without_revisions).delete()
    rows.update(withheld=True)
    rows.exclude(state=EntryStatus.HIDDEN).update(state=EntryStatus.STALE)
    for project_id in projects:
        mark_layers_changed(project_id)


def _parents_of(entries: Collection[Entry]) -> QuerySet[Entry]:
    projects = {entry.project_id for entry in entries}
    return Entry.objects.parents_of(projects, [entry.pk for entry in entries])


def _rows(entries: Collection[Entry]) -> QuerySet[Entry]:
    """Return the stored rows of `entries`."""
    projects = {entry.project_id for entry in entries}
    return Entry.objects.filter(project__in=projects, pk__in=[entry.pk for entry in entries])


def lock(entries: QuerySet[Entry]) -> list[Entry]:
    """Lock `entries`, from the finest layer upward and in the order of ids, as in all other code.

    Return them with the columns `parent` and `project`.
    """
    depth = Case(*(When(granularity=layer, then=layer.depth) for layer in Granularity))
    rows = entries.select_for_update(of=("self",)).order_by(depth, "pk")
    return list(rows.only("parent", "project"))
