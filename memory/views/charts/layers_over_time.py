"""The tokens of each layer over time, as stacked areas of an SVG."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from django.utils.formats import date_format

from memory.layers.history import may_be_in_bank
from memory.layers.periods import Granularity
from memory.models import EntryState
from memory.views.layers_chart import DayRange, end_of_day
from projects.models import Project

# Maximum number of days in the chart, and in its table. Longer periods show evenly spaced days.
MAX_POINTS = 120
MAX_ROWS = 13
MAX_TICKS = 5
# The size of the SVG's view box, which the page scales.
WIDTH, HEIGHT = 1000, 100
# The minimum height of the chart, as a multiple of the budget. Its line is then always visible.
HEADROOM = 1.1
# From this number of days on, the labels of the time axis contain the year.
DAYS_WITHOUT_YEAR = 300


@dataclass(frozen=True)
class LayerTokens:
    """The tokens of each layer at the end of a day. Layers without tokens are missing."""

    day: date
    tokens: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


class Area(NamedTuple):
    """A layer, and the path of its area."""

    layer: str
    path: str


class Tick(NamedTuple):
    """A label of the time axis, at `x` percent."""

    label: str
    x: str
    anchor: str


@dataclass(frozen=True)
class LayersOverTime:
    points: Sequence[LayerTokens]
    budget: int
    days: DayRange

    @cached_property
    def top(self) -> float:
        """The tokens at the upper edge of the picture."""
        return max([self.budget * HEADROOM, *(point.total for point in self.points)])

    @property
    def layers(self) -> list[str]:
        """The layers that have tokens on some day, youngest first."""
        return [
            layer.value
            for layer in Granularity
            if any(point.tokens.get(layer.value) for point in self.points)
        ]

    @property
    def areas(self) -> list[Area]:
        """The areas from the youngest layer, on top, to the oldest."""
        areas = []
        base = [0.0] * len(self.points)
        for layer in reversed(self.layers):
            upper = [
                height + point.tokens.get(layer, 0)
                for height, point in zip(base, self.points, strict=True)
            ]
            areas.append(Area(layer, self._path(upper, base)))
            base = upper
        return areas[::-1]

    def _path(self, upper: Sequence[float], lower: Sequence[float]) -> str:
        forward = [self._place(number, height) for number, height in enumerate(upper)]
        back = [self._place(number, height) for number, height in enumerate(lower)]
        return "M" + " L".join([*forward, *reversed(back)]) + "Z"

    def _place(self, number: int, tokens: float) -> str:
        x = WIDTH * self._share(self.points[number].day)
        return f"{x:.1f} {HEIGHT * (1 - tokens / self.top):.1f}"

    def _share(self, day: date) -> float:
        return (day - self.days.first).days / self.days.count

    @property
    def budget_y(self) -> str:
        return f"{100 * (1 - self.budget / self.top):.1f}"

    @property
    def shown_x(self) -> str:
        return f"{100 * self._share(self.days.shown):.2f}"

    @property
    def ticks(self) -> list[Tick]:
        count = min(MAX_TICKS, self.days.count + 1)
        name = "M Y" if self.days.count > DAYS_WITHOUT_YEAR else "MONTH_DAY_FORMAT"
        ticks = []
        for number in range(count):
            day = self.days.first + timedelta(days=round(self.days.count * number / (count - 1)))
            anchor = "start" if not number else "end" if number == count - 1 else "middle"
            ticks.append(Tick(date_format(day, name), f"{100 * self._share(day):.2f}", anchor))
        return ticks

    @property
    def rows(self) -> list[tuple[LayerTokens, list[int]]]:
        """The days of the table, newest first, with the tokens of each of `layers`."""
        rows = [self.points[number] for number in _spread(len(self.points), MAX_ROWS)]
        layers = self.layers
        return [(row, [row.tokens.get(layer, 0) for layer in layers]) for row in reversed(rows)]

    @property
    def data(self) -> list[dict[str, Any]]:
        """The tokens by day, for `as-of.js`, which shows the number of the slider's day."""
        return [{"day": point.day.isoformat(), "tokens": point.total} for point in self.points]


def layers_over_time(project: Project, days: DayRange) -> LayersOverTime | None:
    """Return the layers from the first day until today; None for a single day. Two queries."""
    if not days.count:
        return None
    dates = [days.first + timedelta(days=number) for number in _spread(days.count + 1, MAX_POINTS)]
    totals = _totals(project, [end_of_day(day, project) for day in dates])
    points = [LayerTokens(day, tokens) for day, tokens in zip(dates, totals, strict=True)]
    return LayersOverTime(points, project.bank_max_tokens, days)


def _spread(count: int, limit: int) -> list[int]:
    """Return at most `limit` evenly spaced integers from 0 to `count - 1`, with both ends."""
    if count <= limit:
        return list(range(count))
    return [round(number * (count - 1) / (limit - 1)) for number in range(limit)]


class _State(NamedTuple):
    state: str
    withheld: bool
    parent: UUID | None


def _totals(project: Project, moments: Iterable[datetime]) -> Iterator[Mapping[str, int]]:
    """Yield the tokens of each layer at each of `moments`, which must be ascending.

    The tokens of an entry are those of its current text.
    """
    entries = {
        pk: (layer, tokens)
        for pk, layer, tokens in project.entries.values_list("pk", "granularity", "tokens")
    }
    columns = ("since", "entry", "state", "withheld", "parent_id")
    rows = EntryState.objects.filter(project=project)
    changes = iter([*rows.order_by("since", "id").values_list(*columns)])
    states: dict[UUID, _State] = {}
    children: dict[UUID, set[UUID]] = defaultdict(set)
    counted: set[UUID] = set()
    totals: Counter[str] = Counter()

    def count(pk: UUID) -> None:
        state = states[pk]
        layer, tokens = entries[pk]
        parent = states.get(state.parent) if state.parent else None
        if may_be_in_bank(state, parent):
            totals[layer] += tokens * (pk not in counted)
            counted.add(pk)
        elif pk in counted:
            totals[layer] -= tokens
            counted.remove(pk)

    change = next(changes, None)
    for moment in moments:
        while change is not None and change[0] <= moment:
            _, pk, *state = change
            change = next(changes, None)
            if pk not in entries:
                continue
            states[pk] = _State(*state)
            if (parent := states[pk].parent) is not None:
                children[parent].add(pk)
            for affected in (pk, *children[pk]):
                count(affected)
        yield {layer: tokens for layer, tokens in totals.items() if tokens > 0}
