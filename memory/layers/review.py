"""What people change about what is kept: a text, a pin, whether it is shown.

Each act is put on the record. Rows are locked from the entry upward, as the ladder does, so that
the two never wait for each other in a circle; the project, where pins are counted, before them.
"""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models import Visibility
from memory.facts import deriving
from memory.layers import losses, texts
from memory.layers.periods import Granularity
from memory.models import (
    Chunk,
    Entry,
    EntryRevision,
    Reason,
    SourceType,
    State,
    Verb,
    Waiting,
)
from memory.models.activity import note
from memory.models.cursors import nudge
from projects.models import Project, remove

# Pins take at most this share of the bank's budget (DESIGN, "Budget").
PINNED_SHARE = 0.5
# What is not in the layers.
ASIDE = (State.HIDDEN, State.PROPOSED)
# Stands for the hash of what an entry was written from, once that changed while it was aside: it is
# to be written anew when it is taken in.
OUTDATED = "outdated"


class Refused(Exception):
    """A change that cannot be made; the text says why, for people."""


@transaction.atomic
def edit(entry: Entry, summary: str, by, reason: str = Reason.OTHER) -> Entry:
    """Gives `entry` the text `summary`, written by the user `by`; the text before is kept.

    What is written into a digest stays as a note among its sources, so that it is not lost when
    the digest is written anew. The digest above is to be rewritten. Raises Refused for a text that
    is withheld, and when a pinned one grows too long.
    """
    if entry.pinned:
        _lock_pins(entry.project_id)
    entry = _locked(entry)
    if entry.withheld:
        raise Refused(_("This text is withheld until it is written anew."))
    if summary == entry.summary:
        return entry
    texts.rewrite(entry, summary, by.get_username(), timezone.now())
    changed = [*texts.CHANGED]
    if entry.granularity != Granularity.CONVERSATION:
        children = entry.children.filter(project=entry.project_id).select_related("session")
        told = [(child.label, child.summary) for child in children]
        audit = losses.audit(told, summary)
        entry.note, entry.losses, entry.particulars = summary, audit.listed(), audit.held
        changed += ["note", "losses", "particulars"]
    if entry.pinned:
        _refuse_too_many_pins(entry)
    entry.save(update_fields=changed)
    outdate(entry.parent)
    _record(entry, Verb.EDITED, by, reason)
    return entry


@transaction.atomic
def redact(entry: Entry, passage: str, by, reason: str = Reason.PRIVATE) -> Entry:
    """Takes every occurrence of `passage` out of the entry's text, and out of its earlier ones.

    Nothing that holds it stands until it is written anew: the digests above are withheld. Raises
    Refused when the text does not hold it.
    """
    entry = _locked(entry)
    if entry.withheld or not passage.strip() or passage not in entry.summary:
        raise Refused(_("This text does not hold these words."))
    left = entry.summary.replace(passage, REDACTED)
    texts.rewrite(entry, left, by.get_username(), timezone.now())
    entry.note = entry.note.replace(passage, REDACTED)
    entry.losses = [loss for loss in entry.losses if passage not in str(loss)]
    entry.save(update_fields=[*texts.CHANGED, "note", "losses"])
    earlier_ones = entry.revisions.filter(project=entry.project_id, summary__contains=passage)
    for earlier in earlier_ones:
        earlier.summary = earlier.summary.replace(passage, REDACTED)
        earlier.save(update_fields=["summary"])
    withhold(_above([entry]), for_good=True)
    here = Chunk.objects.filter(project=entry.project_id)
    remove(here.filter(source_type=SourceType.ENTRY, source=entry.pk))
    deriving.redact(entry, passage)
    _record(entry, Verb.REDACTED, by, reason)
    return entry


@transaction.atomic
def ask_anew(entry: Entry, by, reason: str = Reason.OTHER) -> Entry:
    """Has the text written anew from its sources at the next cycle; the last one stands till then.

    Raises Refused for what waits for review or is hidden.
    """
    entry = _locked(entry)
    if entry.state in ASIDE:
        raise Refused(_("Decide on it first; what is aside is not written anew."))
    entry.sources_hash, entry.state = "", State.STALE
    entry.save(update_fields=["sources_hash", "state"])
    _record(entry, Verb.ASKED_ANEW, by, reason)
    return entry


@transaction.atomic
def pin(entry: Entry, pinned: bool, by=None, reason: str = Reason.OTHER) -> Entry:
    """Keeps `entry` in the bank whatever comes, or no longer. A pinned entry is nobody's child.

    Raises Refused when the pins would take more than half of the budget, and for what does not
    stand in the layers.
    """
    _lock_pins(entry.project_id)
    entry = _locked(entry)
    if pinned == entry.pinned:
        return entry
    if pinned:
        if entry.state not in (State.LIVE, State.FADED, State.ABSORBED):
            why = _("Only what is remembered can be pinned; this entry is not (%(state)s).")
            raise Refused(why % {"state": entry.get_state_display()})
        _refuse_too_many_pins(entry)
        entry.state = State.LIVE
    left = entry.parent
    entry.pinned, entry.parent = pinned, None
    entry.save(update_fields=["pinned", "parent", "state"])
    outdate(left)
    _record(entry, Verb.PINNED if pinned else Verb.UNPINNED, by, reason)
    return entry


@transaction.atomic
def set_hidden(entry: Entry, hidden: bool, by=None, reason: str = Reason.OTHER) -> Entry:
    """Takes `entry` out of the layers, or takes a hidden or a proposed one in.

    Hidden, it is nobody's child and not pinned, and every digest above it is withheld until it is
    rewritten without it. What was proposed from a private session and is refused is withheld
    itself: nobody else has read it, and nobody is to read it among what is hidden.
    """
    entry = _locked(entry)
    was_proposed = entry.state == State.PROPOSED
    if hidden and entry.state != State.HIDDEN:
        is_unread = was_proposed and _is_private(entry)
        if entry.state == State.STALE:
            entry.sources_hash = OUTDATED
        entry.state, entry.parent, entry.pinned = State.HIDDEN, None, False
        entry.waits_because = ""
        entry.save(update_fields=["state", "parent", "pinned", "waits_because", "sources_hash"])
        withhold(_above([entry]))
        if is_unread:
            withhold(_among([entry]))
            entry.withheld = True
        _record(entry, Verb.REJECTED if was_proposed else Verb.HIDDEN, by, reason)
    elif not hidden and entry.state in ASIDE:
        entry.state = State.STALE if _is_outdated(entry) else State.LIVE
        entry.waits_because = ""
        entry.save(update_fields=["state", "waits_because"])
        # A digest speaks from now on for its children, which stood in for it.
        children = entry.children.filter(project=entry.project_id)
        children.filter(state__in=(State.LIVE, State.FADED)).update(state=State.ABSORBED)
        deriving.approve_with(entry)
        _record(entry, Verb.APPROVED if was_proposed else Verb.SHOWN, by, reason)
    return entry


def propose(entries: QuerySet[Entry], because: Waiting) -> None:
    """Sends `entries`, which name their project, back to review, and has what was made of them
    rewritten without them.
    """
    found = _lock(entries.exclude(state=State.HIDDEN))
    rows = _among(found)
    rows.filter(state=State.STALE).update(sources_hash=OUTDATED)
    rows.update(state=State.PROPOSED, waits_because=because, parent=None, pinned=False)
    withhold(_above(found))
    for entry in found:
        nudge(entry.project_id)
        note(entry.project_id, Verb.PROPOSED, entry_id=entry.pk, reason=because)


# What stands in place of words that were taken out.
REDACTED = "[…]"


def _locked(entry: Entry) -> Entry:
    rows = Entry.objects.select_for_update(of=("self",)).select_related("session", "parent")
    return rows.get(project=entry.project_id, pk=entry.pk)


def _record(entry: Entry, verb: Verb, by, reason: str) -> None:
    nudge(entry.project_id)
    note(
        entry.project_id,
        verb,
        by=by,
        reason=reason,
        entry_id=entry.pk,
        granularity=entry.granularity,
        period_key=entry.period_key,
        related=ancestors(entry),
    )


def ancestors(entry: Entry) -> list[UUID]:
    """The digests above `entry`, the nearest first: three at most."""
    found: list[UUID] = []
    above = entry.parent_id
    while above is not None:
        found.append(above)
        rows = Entry.objects.filter(project=entry.project_id, pk=above)
        above = rows.values_list("parent", flat=True).first()
    return found


def _lock_pins(project_id: UUID) -> None:
    """One change of pins at a time; before any entry is locked, as whoever forgets does."""
    Project.objects.select_for_update(no_key=True).get(pk=project_id)


def _refuse_too_many_pins(entry: Entry) -> None:
    """Raises Refused when `entry` does not fit beside the other pins."""
    others = Entry.objects.filter(project=entry.project_id, pinned=True).exclude(pk=entry.pk)
    taken = others.aggregate(tokens=Sum("tokens", default=0))["tokens"] + entry.tokens
    most = int(entry.project.bank_max_tokens * PINNED_SHARE)
    if taken > most:
        why = _("Pins may take %(most)s tokens, half of the budget; these would take %(taken)s.")
        raise Refused(why % {"most": most, "taken": taken})


def outdate(entry: Entry | None) -> None:
    """Has `entry` rewritten; its last text stands until then."""
    if entry is not None:
        mark_stale(entry)
        nudge(entry.project_id)


def mark_stale(entry: Entry) -> None:
    """Marks `entry` as to be rewritten, for whoever is looking through the layers anyway.

    One that is hidden or waits for review stays so, and is rewritten when it is taken in.
    """
    rows = _among([entry])
    rows.filter(state__in=ASIDE).update(sources_hash=OUTDATED)
    rows.exclude(state__in=ASIDE).update(state=State.STALE)


def withhold(entries: QuerySet[Entry], for_good: bool = False, keep_earlier: bool = False) -> None:
    """Has `entries`, which name their projects, and all above them rewritten; no text of theirs
    stands until then.

    What they were taken out of, by a pin or a moderator, counts as above them: it may not be
    rewritten yet. If it is, it stands again as it stood, and no model is asked.

    Earlier texts, which may tell what must not be told, go at once, unless `keep_earlier` (then
    those of what is above them still, which stays withheld as long as they are); with `for_good`,
    the texts of now go too. Everything is locked from the finest layer upward, in the order of
    ids, as whoever else locks several does.
    """
    level = _lock(entries)
    touched: dict[UUID, Entry] = {}
    still = {entry.pk for entry in level}
    while level:
        touched |= {entry.pk: entry for entry in level}
        still |= {entry.parent_id for entry in level if entry.pk in still and entry.parent_id}
        level = _lock(_above(level))
    rows, projects = _among(touched.values()), {one.project_id for one in touched.values()}
    if for_good:
        texts.blank(projects, touched)
    else:
        gone = touched.keys() - still if keep_earlier else touched
        EntryRevision.objects.filter(project__in=projects, entry__in=gone).delete()
    rows.update(withheld=True)
    rows.exclude(state__in=ASIDE).update(state=State.STALE)
    for project_id in projects:
        nudge(project_id)


def _above(entries: Collection[Entry]) -> QuerySet[Entry]:
    projects = {entry.project_id for entry in entries}
    return Entry.objects.above(projects, [entry.pk for entry in entries])


def _among(entries: Collection[Entry]) -> QuerySet[Entry]:
    """The rows of `entries`, as they are now."""
    projects = {entry.project_id for entry in entries}
    return Entry.objects.filter(project__in=projects, pk__in=[entry.pk for entry in entries])


def _lock(entries: QuerySet[Entry]) -> list[Entry]:
    return list(entries.select_for_update().only("parent", "project").order_by("pk"))


def _is_private(entry: Entry) -> bool:
    return entry.session is not None and entry.session.visibility == Visibility.PRIVATE


def _is_outdated(entry: Entry) -> bool:
    return entry.withheld or entry.sources_hash == OUTDATED


def impact(entries: Iterable[Entry]) -> int:
    """How many digests have to be written anew when `entries` are edited, pinned or hidden."""
    return len({above for entry in entries for above in ancestors(entry)})
