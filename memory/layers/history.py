"""How the layers stood at a moment: what the project believed then, minus what was forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext_noop as _

from memory.layers import bank
from memory.models import Entry, EntryRevision, EntryState, State
from projects.models import Project

# Why an entry that stood in the bank does not stand in the view of it.
FORGOTTEN = _("forgotten since")
ASIDE = _("taken out since")
_SPEAKING = (State.LIVE, State.FADED, State.ABSORBED, State.STALE)


@dataclass(frozen=True)
class Stood:
    """An entry as it stood; `summary` is None where that text is gone or withheld by now."""

    entry: Entry
    state: EntryState
    summary: str | None


def bank_as_of(project: Project, moment: datetime) -> bank.Bank:
    """The bank as it stood at `moment`, rendered with the labels and the budget of today.

    Texts are those of then. What was forgotten, hidden or sent to review since is a gap: it is
    listed as left out, and never told by a later text in its place.
    """
    stood = _standing(project, moment)
    items, gaps = [], []
    for one in stood.values():
        if not _was_shown(one, stood):
            continue
        if one.entry.state in (State.HIDDEN, State.PROPOSED):
            gaps.append((one.entry.pk, ASIDE))
        elif one.summary is None:
            gaps.append((one.entry.pk, FORGOTTEN))
        else:
            items.append(_item(one))
    rendered = bank.render(items, project.bank_max_tokens)
    left_out = (*rendered.left_out, *sorted(gaps))
    return bank.Bank(rendered.text, rendered.tokens, rendered.included, left_out)


def shown(project: Project, moment: datetime) -> Mapping[UUID, Stood]:
    """The entries that might have stood in the bank at `moment` and were not taken out since."""
    stood = _standing(project, moment)
    return {
        pk: one
        for pk, one in stood.items()
        if _was_shown(one, stood) and one.entry.state not in (State.HIDDEN, State.PROPOSED)
    }


def entry_as_of(entry: Entry, moment: datetime) -> Stood | None:
    """One entry as it stood at `moment`; None when it was not there yet."""
    return _standing(entry.project, moment, entry).get(entry.pk)


def _standing(
    project: Project, moment: datetime, entry: Entry | None = None
) -> Mapping[UUID, Stood]:
    states = EntryState.objects.filter(project=project, since__lte=moment)
    if entry is not None:
        states = states.filter(entry=entry)
    latest = states.order_by("entry", "-since", "-id").distinct("entry")
    found = {state.entry_id: state for state in latest}
    entries = project.entries.select_related("session").in_bulk(list(found))
    earlier = _earlier_texts(project, entries, found)
    return {
        pk: Stood(entries[pk], state, _text(entries[pk], state, earlier))
        for pk, state in found.items()
        if pk in entries
    }


def _earlier_texts(
    project: Project, entries: Mapping[UUID, Entry], states: Mapping[UUID, EntryState]
) -> dict[tuple[UUID, int], str]:
    replaced = [pk for pk, entry in entries.items() if entry.revision != states[pk].revision]
    rows = EntryRevision.objects.filter(project=project, entry__in=replaced)
    return {
        (entry, revision): summary
        for entry, revision, summary in rows.values_list("entry", "revision", "summary")
        if states[entry].revision == revision
    }


def _text(entry: Entry, state: EntryState, earlier: Mapping[tuple[UUID, int], str]) -> str | None:
    if entry.withheld:
        return None
    if entry.revision == state.revision:
        return entry.summary
    return earlier.get((entry.pk, state.revision))


def _was_shown(one: Stood, stood: Mapping[UUID, Stood]) -> bool:
    """Whether it might stand in the bank of then: EntryQuerySet.in_the_bank, in the past."""
    state = one.state
    if state.withheld:
        return False
    if state.state in (State.LIVE, State.FADED):
        return True
    above = stood.get(state.parent_id) if state.parent_id else None
    spoken_for = above is not None and not above.state.withheld and above.state.state in _SPEAKING
    return state.state in (State.STALE, State.ABSORBED) and not spoken_for


def _item(one: Stood) -> bank.Item:
    now = one.entry.as_item()
    return bank.Item(
        id=now.id,
        granularity=now.granularity,
        key=now.key,
        label=now.label,
        summary=one.summary or "",
        last_source_at=now.last_source_at,
        pinned=one.state.pinned,
        stale=one.state.state == State.STALE,
    )
