"""What people change about what is kept: a text, a pin, whether it is shown.

Rows are locked from the entry upward, as the ladder does, so that the two never wait for each
other in a circle.
"""

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from chat.models import Visibility
from memory.layers import texts
from memory.layers.periods import Granularity
from memory.models import Entry, EntryRevision, State
from projects.models import Project

# Pins take at most this share of the bank's budget (DESIGN, "Budget").
PINNED_SHARE = 0.5
# What is not in the layers.
ASIDE = (State.HIDDEN, State.PROPOSED)


class Refused(Exception):
    """A change that cannot be made; the text says why, for people."""


@transaction.atomic
def edit(entry: Entry, summary: str, by) -> Entry:
    """Gives `entry` the text `summary`, written by the user `by`; the text before is kept.

    The digest above is to be rewritten. Raises Refused when a pinned text grows too long.
    """
    entry = _locked(entry)
    if summary == entry.summary:
        return entry
    texts.rewrite(entry, summary, by.get_username(), timezone.now())
    if entry.pinned:
        _refuse_too_many_pins(entry)
    entry.save(update_fields=texts.CHANGED)
    outdate(entry.parent)
    return entry


@transaction.atomic
def pin(entry: Entry, pinned: bool) -> Entry:
    """Keeps `entry` in the bank whatever comes, or no longer. A pinned entry is nobody's child.

    Raises Refused when the pins would take more than half of the budget, and for what does not
    stand in the layers.
    """
    entry = _locked(entry)
    if pinned == entry.pinned:
        return entry
    if pinned:
        if entry.state not in (State.LIVE, State.FADED, State.ABSORBED):
            raise Refused(f"This entry is {entry.state}; only what is remembered can be pinned.")
        _refuse_too_many_pins(entry)
        entry.state = State.LIVE
    left = entry.parent
    entry.pinned, entry.parent = pinned, None
    entry.save(update_fields=["pinned", "parent", "state"])
    outdate(left)
    return entry


@transaction.atomic
def set_hidden(entry: Entry, hidden: bool) -> Entry:
    """Takes `entry` out of the layers, or takes a hidden or a proposed one in.

    Hidden, it is nobody's child and not pinned, and every digest above it is withheld until it is
    rewritten without it. What was proposed from a private session and is refused is withheld
    itself: nobody else has read it, and nobody is to read it among what is hidden.
    """
    entry = _locked(entry)
    if hidden and entry.state != State.HIDDEN:
        left, is_unread = entry.parent, entry.state == State.PROPOSED and _is_private(entry)
        entry.state, entry.parent, entry.pinned = State.HIDDEN, None, False
        entry.save(update_fields=["state", "parent", "pinned"])
        if left is not None:
            withhold(Entry.objects.filter(pk=left.pk))
        if is_unread:
            withhold(Entry.objects.filter(pk=entry.pk))
            entry.withheld = True
    elif not hidden and entry.state in ASIDE:
        entry.state = State.STALE if _is_outdated(entry) else State.LIVE
        entry.save(update_fields=["state"])
    return entry


def propose(entries: QuerySet[Entry]) -> None:
    """Sends `entries` back to review, and has what was made of them rewritten without them."""
    found = _lock(entries.exclude(state=State.HIDDEN))
    above = {entry.parent_id for entry in found if entry.parent_id}
    rows = Entry.objects.filter(pk__in=[entry.pk for entry in found])
    rows.update(state=State.PROPOSED, parent=None, pinned=False)
    withhold(Entry.objects.filter(pk__in=above))


def _locked(entry: Entry) -> Entry:
    rows = Entry.objects.select_for_update(of=("self",)).select_related("session", "parent")
    return rows.get(pk=entry.pk)


def _refuse_too_many_pins(entry: Entry) -> None:
    """Raises Refused when `entry` does not fit beside the other pins. One pin at a time."""
    project = Project.objects.select_for_update(no_key=True).get(pk=entry.project_id)
    others = project.entries.filter(pinned=True).exclude(pk=entry.pk)
    taken = others.aggregate(tokens=Sum("tokens", default=0))["tokens"] + entry.tokens
    most = int(project.bank_max_tokens * PINNED_SHARE)
    if taken > most:
        raise Refused(f"Pins may take {most} tokens, half of the budget; these would take {taken}.")


def outdate(entry: Entry | None) -> None:
    """Has `entry` rewritten; its last text stands until then.

    One that is hidden or waits for review stays so, and is rewritten when it is taken in.
    """
    if entry is not None:
        rows = Entry.objects.filter(pk=entry.pk)
        rows.filter(state__in=ASIDE).update(sources_hash="")
        rows.exclude(state__in=ASIDE).update(state=State.STALE)


def withhold(entries: QuerySet[Entry]) -> None:
    """Has `entries` and all above them rewritten; no text of theirs stands until then.

    Their earlier texts, which may tell what must not be told, go at once. Everything is locked
    from the finest layer upward, in the order of ids, as whoever else locks several does.
    """
    level = _lock(entries)
    touched: list[UUID] = []
    while level:
        touched += [entry.pk for entry in level]
        level = _lock(Entry.objects.filter(pk__in={entry.parent_id for entry in level}))
    rows = Entry.objects.filter(pk__in=touched)
    rows.update(withheld=True)
    rows.exclude(state__in=ASIDE).update(state=State.STALE)
    EntryRevision.objects.filter(entry__in=touched).delete()


def _lock(entries: QuerySet[Entry]) -> list[Entry]:
    return list(entries.select_for_update().only("parent").order_by("pk"))


def _is_private(entry: Entry) -> bool:
    return entry.session is not None and entry.session.visibility == Visibility.PRIVATE


def _is_outdated(entry: Entry) -> bool:
    is_digest = entry.granularity != Granularity.CONVERSATION
    return entry.withheld or (is_digest and not entry.sources_hash)
