"""The layers as they were at a past moment, without text that was forgotten since."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.utils.translation import gettext_noop as _

from memory.facts.superseded import ended_facts, mark_ended
from memory.layers import bank, lines
from memory.layers.lines import Line
from memory.models import Entry, EntryRevision, EntryState, EntryStatus
from memory.permissions import is_private
from projects.models import Project

# Reasons why the reconstructed bank does not contain an entry that was in the bank.
FORGOTTEN = _("forgotten")
TAKEN_OUT = _("removed")
# The states of a digest whose children are not in the bank.
_REPLACES_CHILDREN = (EntryStatus.LIVE, EntryStatus.FADED, EntryStatus.ABSORBED, EntryStatus.STALE)


class StateColumns(Protocol):
    """The columns of `EntryState` that determine whether an entry is in the bank."""

    @property
    def state(self) -> str: ...
    @property
    def withheld(self) -> bool: ...


@dataclass(frozen=True)
class PastEntry:
    """An entry at a past moment. `summary` is None and `lines` are empty if the text of that time
    may no longer be shown.
    """

    entry: Entry
    state: EntryState
    summary: str | None = None
    lines: Sequence[Line] = ()

    @property
    def is_taken_out(self) -> bool:
        """True if the entry is hidden or waits for review now."""
        return self.entry.state in (EntryStatus.HIDDEN, EntryStatus.PROPOSED)


def bank_as_of(project: Project, moment: datetime) -> bank.Bank:
    """Return the bank as it was at `moment`, with today's labels and budget.

    Texts and marks of ended facts are those of that moment. Entries that were hidden, sent to
    review or partly forgotten since are listed as left out; deleted entries are missing. No later
    text replaces them.
    """
    items, missing = [], []
    ended = ended_facts(project, moment)
    for past in bank_candidates(project, moment).values():
        if past.is_taken_out:
            missing.append((past.entry.pk, TAKEN_OUT))
        elif past.summary is None:
            missing.append((past.entry.pk, FORGOTTEN))
        else:
            is_stale = past.state.state == EntryStatus.STALE
            marked = mark_ended(past.lines, ended)
            item = replace(past.entry.as_item(), lines=marked, stale=is_stale)
            items.append(replace(item, pinned=past.state.pinned))
    rendered = bank.render(items, project.bank_max_tokens)
    left_out = (*rendered.left_out, *sorted(missing))
    return bank.Bank(rendered.text, rendered.tokens, rendered.included, left_out)


def entry_as_of(entry: Entry, moment: datetime) -> PastEntry | None:
    """Return one entry as it was at `moment`; None if it did not exist yet."""
    return _read(entry.project, _states(entry.project, moment, entry)).get(entry.pk)


def bank_candidates(project: Project, moment: datetime) -> Mapping[UUID, PastEntry]:
    """Return the entries that may have been in the bank at `moment`.

    This is `EntryQuerySet.bank_candidates` for the past. Earlier texts of private sessions are left
    out: if they are from a time when the session was shared, its creator has not approved them.
    """
    states = _states(project, moment)

    def is_candidate(state: EntryState) -> bool:
        return may_be_in_bank(state, states.get(state.parent_id) if state.parent_id else None)

    # Selected before the entries are read, because after years most are absorbed.
    past = _read(project, {pk: state for pk, state in states.items() if is_candidate(state)})
    return {
        pk: PastEntry(row.entry, row.state)
        if is_private(row.entry) and row.state.revision != row.entry.revision
        else row
        for pk, row in past.items()
    }


def may_be_in_bank(entry: StateColumns, parent: StateColumns | None) -> bool:
    """Return whether an entry was a candidate for the bank, by its state and its digest's."""
    if entry.withheld:
        return False
    if entry.state in (EntryStatus.LIVE, EntryStatus.FADED):
        return True
    replaced = parent is not None and not parent.withheld and parent.state in _REPLACES_CHILDREN
    return entry.state in (EntryStatus.STALE, EntryStatus.ABSORBED) and not replaced


def _states(
    project: Project, moment: datetime, entry: Entry | None = None
) -> dict[UUID, EntryState]:
    """Return the state at `moment` of each entry that existed, or only of `entry`.

    Entries that were deleted since are left out, so that the entries below them are candidates.
    """
    rows = EntryState.objects.filter(project=project, entry__project=project, since__lte=moment)
    if entry is not None:
        rows = rows.filter(entry=entry)
    latest = rows.order_by("entry", "-since", "-id").distinct("entry")
    return {state.entry_id: state for state in latest}


def _read(project: Project, states: Mapping[UUID, EntryState]) -> Mapping[UUID, PastEntry]:
    entries = project.entries.select_related("session").in_bulk(list(states))
    replaced = {pk for pk, row in entries.items() if row.revision != states[pk].revision}
    revisions = EntryRevision.objects.filter(project=project, entry__in=replaced)
    texts: dict[UUID, Entry | EntryRevision] = {
        row.entry_id: row for row in revisions if states[row.entry_id].revision == row.revision
    }
    texts |= {pk: row for pk, row in entries.items() if pk not in replaced}
    past = {}
    for pk, row in entries.items():
        text = None if row.withheld else texts.get(pk)
        past[pk] = PastEntry(row, states[pk])
        if text is not None:
            stored = lines.read(text.lines, text.summary, row.day)
            past[pk] = PastEntry(row, states[pk], text.summary, stored)
    return past
