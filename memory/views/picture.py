"""A project's layers as a picture: as they are, or as they stood at the end of a day."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import groupby

from django.utils import timezone
from django.utils.dateparse import parse_date

from chat import tokens
from memory.access import entries_for
from memory.layers import history
from memory.layers.periods import Granularity
from memory.models import Entry, EntryState, State
from memory.templatetags.layers import first_line, told
from projects.models import Membership, Project

ENTRIES_A_LAYER = 200
# What is spoken for by its digest, or hidden, is not drawn: the digest's page leads to it.
DRAWN = (State.LIVE, State.PROPOSED, State.FADED, State.STALE)
# A block this long fills the width, unless there are longer ones.
FULL_WIDTH_TOKENS = 180


@dataclass(frozen=True)
class Block:
    """An entry as it is drawn: `text` is what it says, or said; `tokens` are those of it."""

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
        return str(State(self.state).label)


@dataclass(frozen=True)
class Picture:
    """The blocks of each layer, youngest layer and newest block first."""

    blocks: Mapping[Granularity, Sequence[Block]]

    @cached_property
    def drawn(self) -> list[Block]:
        return [block for layer in self.blocks.values() for block in layer]

    @property
    def layers(self) -> dict[str, list[list[Block]]]:
        """Those that hold anything, by name: their blocks, those of one period together."""
        return {name.value: _by_period(layer) for name, layer in self.blocks.items() if layer}

    @property
    def marks(self) -> set[str]:
        """What the legend has to explain beside the layers: states, and pins."""
        marks = {block.state for block in self.drawn}
        return marks | {"pinned"} if any(block.pinned for block in self.drawn) else marks

    @property
    def scale(self) -> int:
        """The tokens of a block that is as wide as the picture."""
        return max([FULL_WIDTH_TOKENS, *(block.tokens for block in self.drawn)])


def _by_period(layer: Iterable[Block]) -> list[list[Block]]:
    return [list(found) for _, found in groupby(layer, lambda block: block.entry.period_key)]


def now(member: Membership) -> Picture:
    """The newest entries of each layer, as they are."""
    entries = entries_for(member).filter(state__in=DRAWN).newest_first()
    rows = {one: entries.filter(granularity=one)[:ENTRIES_A_LAYER] for one in Granularity}
    return Picture({one: [_as_it_is(entry) for entry in found] for one, found in rows.items()})


def _as_it_is(entry: Entry) -> Block:
    return Block(entry, entry.state, entry.pinned, entry.tokens, told(entry))


def then(member: Membership, moment: datetime) -> Picture:
    """The layers as they stood at `moment`, minus what was forgotten or taken out since."""
    stood = history.shown(member.project, moment)
    seen = set(entries_for(member).filter(pk__in=stood).values_list("pk", flat=True))
    newest = sorted(
        (one for pk, one in stood.items() if pk in seen and one.summary is not None),
        key=lambda one: (one.entry.period_key, one.entry.last_source_at),
        reverse=True,
    )
    return Picture({layer: list(_as_they_stood(newest, layer)) for layer in Granularity})


def _as_they_stood(newest: Sequence[history.Stood], layer: Granularity) -> Iterator[Block]:
    of_layer = [one for one in newest if one.entry.granularity == layer]
    for one in of_layer[:ENTRIES_A_LAYER]:
        text = one.summary or ""
        state, size = one.state.state, tokens.count(text)
        # What was absorbed by a digest that is not there spoke for itself.
        state = State.LIVE if state == State.ABSORBED else state
        yield Block(one.entry, state, one.state.pinned, size, text)


@dataclass(frozen=True)
class Days:
    """The days that the picture can be asked for, and the one it shows."""

    first: date
    last: date
    shown: date

    @property
    def number(self) -> int:
        return (self.last - self.first).days

    @property
    def place(self) -> int:
        return (self.shown - self.first).days

    @property
    def is_today(self) -> bool:
        return self.shown == self.last


def days(project: Project, asked: str) -> Days:
    """From the first that was remembered until today, in the project's zone; `asked` is an ISO
    date, or anything else for today.
    """
    today = timezone.localdate(timezone=project.zone)
    earliest = EntryState.objects.filter(project=project).order_by("since").values_list("since")
    begun = earliest.first()
    first = timezone.localdate(begun[0], project.zone) if begun else today
    try:
        day = parse_date(asked) or today
    except ValueError:
        day = today
    first = min(first, today)
    return Days(first, today, min(max(day, first), today))


def end_of(day: date, project: Project) -> datetime:
    """The last instant of `day` in the project's zone."""
    return datetime.combine(day + timedelta(days=1), time.min, project.zone) - timedelta(
        microseconds=1
    )
