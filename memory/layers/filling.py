"""Filling: selects the lines of entries that the memory bank contains within its budget. Pure.

Pinned entries come first, with up to half of the budget. Then each month gets one line. If these
lines would take more than 60 % of the budget, the months before the latest twelve get one line per
quarter. If that is too much, they get one line per year. If that is still too much, the latest
twelve months are treated in the same way.

Then recent entries get their share. The rest of the budget is filled one line at a time, with the
next line of the `Period` that has the largest

    √messages × recency ÷ (shown lines + 1) × score of its next line.

The lines of a period are taken in order. A line that repeats a shown line is skipped.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from uuid import UUID

from memory.layers.lines import Line, LineIndex, roll_up_lazily

# The maximum share of the budget that pinned entries get before all others.
PINNED_SHARE = 0.5
# If the first lines of all months would take more than this share, months share a line.
FLOOR_SHARE = 0.6
# An entry is recent if all its lines are at most RECENT_DAYS older than the newest line of all
# entries. Recent entries get RECENT_SHARE of the budget.
RECENT_DAYS = 14
RECENT_SHARE = 0.3
# The age of a period, in days, at which its lines count half as much as new lines. It is the age of
# its newest line, compared with the newest line of all entries.
HALF_VALUE_DAYS = 365
# Plans for the first lines of months. In the plan (12, 3), each of the latest 12 months gets a line
# of its own, and before them, each 3 months of a year share a line. The first plan that fits is
# used, or the last plan if none fits.
FLOOR_PLANS = ((math.inf, 1), (12, 3), (12, 12), (0, 3), (0, 12))
# The minimum score, so that lines without a score can be selected.
MIN_SCORE = 0.01

Month = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Source:
    """An entry whose lines may be shown; `messages` is the number of messages that it covers."""

    id: UUID
    lines: Sequence[Line]
    messages: int
    pinned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ShownLine:
    """A line in the bank and the id of its entry. Compared by identity."""

    source: UUID
    line: Line


@dataclass(eq=False, slots=True)
class Period:
    """The lines of one month, in order. They are from one recent or pinned entry, or from all other
    entries.

    `weight` is the constant part of the value of its lines. `next` is the next line to show. It
    repeats none of the first `compared` lines of the bank.
    """

    month: Month
    rest: Iterator[ShownLine]
    weight: float
    is_recent: bool = False
    pinned: bool = False
    shown: list[ShownLine] = field(default_factory=list)
    next: ShownLine | None = field(init=False)
    compared: int = 0

    def __post_init__(self) -> None:
        self.advance()

    def advance(self) -> None:
        self.next = next(self.rest, None)
        self.compared = 0


def fill(
    sources: Iterable[Source],
    room: int,
    cost: Callable[[ShownLine], int],
    heading_cost: Callable[[Month], int],
) -> list[ShownLine]:
    """Return the lines to show in at most `room` tokens, in the order in which they were chosen.

    `cost` returns the number of tokens of a line. `heading_cost` returns the number of tokens of
    the heading that the first line of a month needs. The order of `sources` does not matter.
    """
    periods = _periods(sources)
    filling = _Filling(periods, room, cost, cache(heading_cost))
    filling.take_best([period for period in periods if period.pinned], room * PINNED_SHARE)
    filling.take_floors(room * FLOOR_SHARE)
    recent = [period for period in periods if period.is_recent]
    shown = sum(cost(line) for period in recent for line in period.shown)
    filling.take_best(recent, room * RECENT_SHARE - shown)
    filling.take_best(periods, room)
    return filling.chosen


def _periods(sources: Iterable[Source]) -> list[Period]:
    """Group the lines into periods, in an order that does not depend on that of `sources`."""
    sources = sorted(sources, key=lambda source: source.id)
    newest = max((line.day for source in sources for line in source.lines), default=date.min)
    recent_from = newest - min(timedelta(days=RECENT_DAYS), newest - date.min)
    periods = []
    months: defaultdict[Month, list[tuple[Source, list[Line]]]] = defaultdict(list)
    for source in sources:
        is_recent = all(line.day >= recent_from for line in source.lines)
        by_month: defaultdict[Month, list[Line]] = defaultdict(list)
        for line in source.lines:
            by_month[line.day.year, line.day.month].append(line)
        for month, lines in by_month.items():
            if is_recent or source.pinned:
                rest = iter([ShownLine(source.id, line) for line in lines])
                weight = _weight(source.messages, lines, newest)
                periods.append(Period(month, rest, weight, is_recent, source.pinned))
            else:
                months[month].append((source, lines))
    periods += [_merged(month, parts, newest) for month, parts in months.items()]
    return periods


def _merged(month: Month, parts: Sequence[tuple[Source, list[Line]]], newest: date) -> Period:
    """Return the period of a month, with the lines of all its entries."""
    owners = {id(line): source.id for source, lines in parts for line in lines}
    lists = [lines for _, lines in parts]
    # Lazy, because only a few of these lines are read.
    lines = roll_up_lazily(lists) if len(lists) > 1 else iter(lists[0])
    # The messages of an entry with lines in two months are divided between them.
    messages = sum(source.messages * len(part) / len(source.lines) for source, part in parts)
    weight = _weight(messages, [line for lines in lists for line in lines], newest)
    return Period(month, (ShownLine(owners[id(line)], line) for line in lines), weight)


def _weight(messages: float, lines: Sequence[Line], newest: date) -> float:
    age = (newest - max(line.day for line in lines)).days
    return math.sqrt(max(messages, 1)) / (1 + age / HALF_VALUE_DAYS)


@dataclass
class _Filling:
    """The lines chosen so far, and the number of tokens that are left."""

    periods: Sequence[Period]
    room: float
    cost: Callable[[ShownLine], int]
    heading_cost: Callable[[Month], int]
    chosen: list[ShownLine] = field(default_factory=list)
    index: LineIndex = field(default_factory=LineIndex)
    months: set[Month] = field(default_factory=set)

    def next_line(self, period: Period) -> ShownLine | None:
        """Return the next line of a period that does not repeat a shown line, or None."""
        while period.next is not None and period.compared < len(self.index):
            if self.index.repeats(period.next.line):
                period.advance()
            else:
                period.compared = len(self.index)
        return period.next

    def value(self, period: Period) -> float:
        """Return the value of the next line of a period; 0 if there is none."""
        shown = self.next_line(period)
        if shown is None:
            return 0.0
        return period.weight / (len(period.shown) + 1) * max(shown.line.score, MIN_SCORE)

    def price(self, period: Period) -> float:
        """Return the tokens of a period's next line, with the heading if it is not shown yet;
        infinite if there is no next line.
        """
        shown = self.next_line(period)
        if shown is None:
            return math.inf
        heading = 0 if period.month in self.months else self.heading_cost(period.month)
        return heading + self.cost(shown)

    def take(self, period: Period) -> None:
        self.room -= self.price(period)
        shown = self.next_line(period)
        assert shown is not None
        self.months.add(period.month)
        self.index.add(shown.line)
        self.chosen.append(shown)
        period.shown.append(shown)
        period.advance()

    def take_floors(self, limit: float) -> None:
        """Take one line for each month or group of months that has none.

        The first plan of FLOOR_PLANS that fits into `limit` determines the groups.
        """
        for full_months, group_months in FLOOR_PLANS:
            groups = self.groups(full_months, group_months)
            best = [max(group, key=self.value) for group in groups]
            if sum(map(self.price, best)) <= limit:
                break
        for period in best:
            if self.price(period) <= self.room:
                self.take(period)

    def groups(self, full_months: float, group_months: int) -> list[list[Period]]:
        """Group the periods by months as a plan says, newest first.

        Omit groups that show a line, and periods that have no further line.
        """
        newest_first = sorted({period.month for period in self.periods}, reverse=True)
        keys: dict[Month, tuple[int, ...]] = {}
        for place, (year, month) in enumerate(newest_first):
            is_full = place < full_months
            keys[year, month] = (year, month) if is_full else (year, (month - 1) // group_months, 0)
        shown = {keys[month] for month in self.months}
        groups: defaultdict[tuple[int, ...], list[Period]] = defaultdict(list)
        for period in sorted(self.periods, key=lambda period: period.month, reverse=True):
            if keys[period.month] not in shown and self.next_line(period) is not None:
                groups[keys[period.month]].append(period)
        return list(groups.values())

    def take_best(self, periods: Iterable[Period], limit: float) -> None:
        """Take lines of `periods`, the most valuable first, in at most `limit` tokens.

        If the next line of a period does not fit, this call takes no more lines of the period. So
        its first lines are shown without gaps.
        """
        heap = [(-self.value(period), place, period) for place, period in enumerate(periods)]
        heapq.heapify(heap)
        while heap:
            value, place, period = heapq.heappop(heap)
            if value == -self.value(period):
                price = self.price(period)
                if price > min(limit, self.room):
                    continue
                self.take(period)
                limit -= price
            if self.next_line(period) is not None:
                heapq.heappush(heap, (-self.value(period), place, period))
