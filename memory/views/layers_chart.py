"""Data for the list of a project's layers, now or at the end of a past day."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from uuid import UUID

from django.utils import timezone
from django.utils.dateparse import parse_date

from memory.layers import history
from memory.layers.periods import Granularity
from memory.models import Entry, EntryState, EntryStatus
from memory.permissions import entries_for
from memory.templatetags.layers import first_line, visible_summary
from projects.core import token_counting
from projects.models import Membership, Project

MAX_ENTRIES_PER_LAYER = 200
# Absorbed and hidden entries are not listed. The page of their digest links to them.
DRAWN_STATES = (EntryStatus.LIVE, EntryStatus.PROPOSED, EntryStatus.FADED, EntryStatus.STALE)
# A bar of this size is full, unless there is a larger one.
FULL_BAR_TOKENS = 180


@dataclass(frozen=True)
class LayerBlock:
    """An entry as it is listed, with its text and tokens at that time."""

    entry: Entry
    state: str
    pinned: bool
    tokens: int
    text: str

    @property
    def headline(self) -> str:
        return first_line(self.text)

    @property
    def state_name(self) -> str:
        return str(EntryStatus(self.state).label)


@dataclass(frozen=True)
class LayersChart:
    """The blocks of each layer, youngest layer and newest block first."""

    blocks: Mapping[Granularity, Sequence[LayerBlock]]

    @cached_property
    def drawn(self) -> list[LayerBlock]:
        return [block for layer in self.blocks.values() for block in layer]

    def without(self, ids: Collection[UUID]) -> "LayersChart":
        """Return the chart without the entries `ids`, which the page lists elsewhere."""
        return LayersChart(
            {
                layer: [block for block in blocks if block.entry.pk not in ids]
                for layer, blocks in self.blocks.items()
            }
        )

    @property
    def layers(self) -> dict[str, Sequence[LayerBlock]]:
        """The layers that are not empty, by name."""
        return {name.value: layer for name, layer in self.blocks.items() if layer}

    @property
    def has_pins(self) -> bool:
        return any(block.pinned for block in self.drawn)

    @property
    def scale(self) -> int:
        """The tokens of a full bar."""
        return max([FULL_BAR_TOKENS, *(block.tokens for block in self.drawn)])


def current_chart(member: Membership) -> LayersChart:
    """Return the newest entries of each layer in their current state."""
    entries = entries_for(member).filter(state__in=DRAWN_STATES).newest_first()
    return LayersChart(
        {
            layer: [
                LayerBlock(entry, entry.state, entry.pinned, entry.tokens, visible_summary(entry))
                for entry in entries.filter(granularity=layer)[:MAX_ENTRIES_PER_LAYER]
            ]
            for layer in Granularity
        }
    )


def chart_as_of(member: Membership, moment: datetime) -> LayersChart:
    """Return the layers at `moment`, without text that was forgotten or hidden since."""
    snapshots = history.bank_candidates(member.project, moment)
    visible = set(entries_for(member).filter(pk__in=snapshots).values_list("pk", flat=True))
    newest = sorted(
        (
            snapshot
            for pk, snapshot in snapshots.items()
            if pk in visible and snapshot.summary is not None and not snapshot.is_taken_out
        ),
        key=lambda snapshot: (snapshot.entry.period_key, snapshot.entry.last_source_at),
        reverse=True,
    )
    blocks: dict[Granularity, list[LayerBlock]] = {layer: [] for layer in Granularity}
    for snapshot in newest:
        layer = blocks[Granularity(snapshot.entry.granularity)]
        if len(layer) < MAX_ENTRIES_PER_LAYER:
            text, state = snapshot.summary or "", snapshot.state.state
            # An absorbed entry whose digest is not shown was in the bank itself.
            state = EntryStatus.LIVE if state == EntryStatus.ABSORBED else state
            tokens = token_counting.count(text)
            layer.append(LayerBlock(snapshot.entry, state, snapshot.state.pinned, tokens, text))
    return LayersChart(blocks)


@dataclass(frozen=True)
class DayRange:
    """The days for which the chart can be drawn, and the day it shows."""

    first: date
    last: date
    shown: date

    @property
    def count(self) -> int:
        return (self.last - self.first).days

    @property
    def offset(self) -> int:
        return (self.shown - self.first).days

    @property
    def is_today(self) -> bool:
        return self.shown == self.last


def day_range(project: Project, shown: str) -> DayRange:
    """Return the days from the first entry until today, in the project's zone.

    `shown` is an ISO date; anything else means today.
    """
    today = timezone.localdate(timezone=project.zone)
    states = EntryState.objects.filter(project=project).order_by("since")
    since = states.values_list("since", flat=True).first()
    first = min(timezone.localdate(since, project.zone), today) if since else today
    try:
        day = parse_date(shown) or today
    except ValueError:
        day = today
    return DayRange(first, today, min(max(day, first), today))


def end_of_day(day: date, project: Project) -> datetime:
    """Return the last instant of `day` in the project's zone."""
    midnight = datetime.combine(day + timedelta(days=1), time.min, project.zone)
    return midnight - timedelta(microseconds=1)
