"""What people change about what is kept: a text, a pin, whether it is shown.

Rows are locked from the entry upward, as the ladder does, so that the two never wait for each
other in a circle.
"""

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from memory.layers import bank
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
    EntryRevision.objects.create(
        project_id=entry.project_id,
        entry=entry,
        revision=entry.revision,
        summary=entry.summary,
        written_by=entry.written_by,
        written_at=entry.written_at,
    )
    entry.revision += 1
    entry.summary, entry.written_by, entry.written_at = summary, by.get_username(), timezone.now()
    entry.tokens = bank.item_tokens(entry.as_item())
    if entry.pinned:
        _refuse_too_many_pins(entry)
    entry.save(update_fields=["revision", "summary", "written_by", "written_at", "tokens"])
    _outdate(entry.parent)
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
    _outdate(left)
    return entry


@transaction.atomic
def set_hidden(entry: Entry, hidden: bool) -> Entry:
    """Takes `entry` out of the layers, or takes a hidden or a proposed one in.

    Hidden, it is nobody's child and not pinned, and every digest above it is withheld until it is
    rewritten without it.
    """
    entry = _locked(entry)
    if hidden and entry.state != State.HIDDEN:
        left = entry.parent
        entry.state, entry.parent, entry.pinned = State.HIDDEN, None, False
        entry.save(update_fields=["state", "parent", "pinned"])
        withhold(left)
    elif not hidden and entry.state in ASIDE:
        entry.state = State.STALE if _is_outdated(entry) else State.LIVE
        entry.save(update_fields=["state"])
    return entry


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


def _outdate(digest: Entry | None) -> None:
    """Has `digest` rewritten; its last text stands until then.

    One that is hidden or waits for review stays so, and is rewritten when it is taken in.
    """
    if digest is not None:
        rows = Entry.objects.filter(pk=digest.pk)
        rows.filter(state__in=ASIDE).update(sources_hash="")
        rows.exclude(state__in=ASIDE).update(state=State.STALE)


def withhold(digest: Entry | None) -> None:
    """Has `digest` and all above it rewritten; no text of theirs stands until then.

    An empty `sources_hash` says so: nothing that may be shown vouches for the text.
    """
    while digest is not None:
        rows = Entry.objects.filter(pk=digest.pk)
        rows.update(sources_hash="")
        rows.exclude(state__in=ASIDE).update(state=State.STALE)
        digest = digest.parent


def _is_outdated(entry: Entry) -> bool:
    return entry.granularity != Granularity.CONVERSATION and not entry.sources_hash
