"""A project's memory at a glance: how it grew, what its digests carry, what it cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce, TruncWeek
from django.utils import timezone

from memory.layers import losses
from memory.layers.periods import Granularity
from memory.models import Call, State
from memory.models.entries import CONVERSATION
from projects.models import Project

WEEKS = 26


@dataclass(frozen=True)
class Week:
    """What was remembered of a week that begins on `monday`, and what writing in it cost."""

    monday: date
    messages: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)


@dataclass(frozen=True)
class Layer:
    """How many entries stand in a layer, and which share of what they were made of they carry;
    None where that is not known, or nothing could be lost.
    """

    granularity: Granularity
    entries: int
    kept: float | None


class Glance:
    def __init__(self, project: Project, now: datetime | None = None) -> None:
        self.project = project
        self.today = timezone.localdate(now or timezone.now(), project.zone)

    @cached_property
    def weeks(self) -> list[Week]:
        """The last WEEKS, the oldest first, from the first in which there was something."""
        monday = self.today - timedelta(days=self.today.weekday())
        mondays = [monday - timedelta(weeks=back) for back in range(WEEKS - 1, -1, -1)]
        told, spent = self._told(mondays[0]), self._spent(mondays[0])
        found = [Week(one, told.get(one, 0), *spent.get(one, (0, Decimal(0)))) for one in mondays]
        begun = next((at for at, week in enumerate(found) if week.messages or week.tokens), WEEKS)
        return found[min(begun, WEEKS - 1) :]

    def _told(self, first: date) -> Mapping[date, int]:
        entries = self.project.entries.filter(
            granularity=CONVERSATION, last_source_at__gte=self._midnight(first)
        )
        return dict(_by_week(entries, "last_source_at", self.project, Sum("message_count")))

    def _spent(self, first: date) -> Mapping[date, tuple[int, Decimal]]:
        calls = Call.objects.filter(project=self.project, started_at__gte=self._midnight(first))
        tokens = Sum("input_tokens") + Sum("output_tokens")
        cost = Coalesce(Sum("cost"), Decimal(0))
        rows = _by_week(calls, "started_at", self.project, tokens, cost)
        return {week: (used, paid) for week, used, paid in rows}

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time.min, self.project.zone)

    @cached_property
    def layers(self) -> list[Layer]:
        """Those that hold anything, the youngest first."""
        standing = self.project.entries.filter(
            state__in=(State.LIVE, State.FADED, State.ABSORBED, State.STALE)
        )
        counted = dict(standing.order_by().values_list("granularity").annotate(Count("pk")))
        carried = _carried(standing.exclude(granularity=CONVERSATION).filter(withheld=False))
        return [
            Layer(layer, counted[layer], carried.get(layer))
            for layer in Granularity
            if layer in counted
        ]

    @property
    def most_messages(self) -> int:
        return max(week.messages for week in self.weeks)

    @property
    def most_tokens(self) -> int:
        return max(week.tokens for week in self.weeks)

    @property
    def cost(self) -> Decimal:
        """Of all the weeks shown, in US dollars."""
        return sum((week.cost for week in self.weeks), Decimal(0))


def _by_week(rows, column: str, project: Project, *sums) -> Iterator[tuple]:
    """(monday, *sums) of each week in the project's zone in which there are rows."""
    weeks = rows.order_by().annotate(week=TruncWeek(column, tzinfo=project.zone)).values("week")
    totals = {f"total{number}": one for number, one in enumerate(sums)}
    for row in weeks.annotate(**totals):
        monday = timezone.localdate(row["week"], project.zone)
        yield (monday, *(row[name] for name in totals))


def _carried(digests) -> dict[str, float]:
    """By layer, the share of particulars that its digests carry, as they were audited."""
    held: dict[str, int] = {}
    missing: dict[str, int] = {}
    rows = digests.filter(particulars__gt=0).order_by()
    for layer, particulars, lost in rows.values_list(
        "granularity", "particulars", "losses"
    ).iterator():
        held[layer] = held.get(layer, 0) + particulars
        missing[layer] = missing.get(layer, 0) + losses.number(lost)
    return {layer: 1 - missing[layer] / of for layer, of in held.items()}
