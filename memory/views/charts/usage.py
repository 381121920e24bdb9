"""Tokens and cost of model calls by day and model, as stacked bars."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import formats, timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.models import Call
from chat.providers.sums import plain_rows, summed
from projects.models import Project, in_project

SUM_DAYS = 30
# The maximum number of series. All other models are one more series, "other models".
MAX_SERIES = 4
# The width of a bar as a share of the width of a day.
BAR_SHARE = 0.7


class Bar(NamedTuple):
    """A segment of a day's bar, in percent of the chart. `series` is its number, from 0."""

    series: int
    x: str
    y: str
    width: str
    height: str
    title: str


@dataclass(frozen=True)
class StackedBars:
    """A chart of values by day and model. `models` are the names of the series, from 0."""

    label: str | Promise
    days: Sequence[date]
    models: Mapping[int, str]
    values: Mapping[tuple[date, str], Any]
    show: Callable[[Any], str]

    @property
    def total(self) -> str:
        return self.show(sum(self.values.values()))

    @property
    def top(self) -> str:
        """The value at the top of the chart."""
        return self.show(self._highest)

    @cached_property
    def _highest(self) -> Any:
        return max(self._sum(day) for day in self.days)

    def _sum(self, day: date) -> Any:
        return sum(self.values.get((day, model), 0) for model in self.models.values())

    @property
    def bars(self) -> list[Bar]:
        bars = []
        step = 100 / len(self.days)
        for number, day in enumerate(self.days):
            base = 0.0
            for series, model in self.models.items():
                value = self.values.get((day, model), 0)
                if not value:
                    continue
                height = 100 * float(value) / float(self._highest)
                x, y = step * (number + (1 - BAR_SHARE) / 2), 100 - base - height
                left, upper, width, tall = (
                    f"{size:.2f}" for size in (x, y, step * BAR_SHARE, height)
                )
                title = f"{model}: {self.show(value)}"
                bars.append(Bar(series, left, upper, width, tall, title))
                base += height
        return bars

    @property
    def rows(self) -> list[tuple[date, list[str], str]]:
        """The days with calls, newest first: (day, values by model, sum)."""
        return [
            (
                day,
                [self.show(self.values.get((day, model), 0)) for model in self.models.values()],
                self.show(total),
            )
            for day in reversed(self.days)
            if (total := self._sum(day))
        ]


def latest(calls: QuerySet[Call], days: int) -> QuerySet[Call]:
    """Return the calls of the last `days` days, including today, in the active time zone."""
    first = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return calls.filter(started_at__gte=first - timedelta(days=days - 1))


def model_calls(project: Project | None = None) -> list[dict[str, Any]]:
    """Return the sums of the last SUM_DAYS days by day and model."""
    calls = latest(Call.objects.filter(in_project(project)), SUM_DAYS)
    return plain_rows(summed(calls, ("day", "model")))


def usage_charts(rows: Iterable[Mapping[str, Any]], day_count: int = SUM_DAYS) -> list[StackedBars]:
    """Return charts of tokens and of cost, if there are any, from sums by day and model."""
    tokens: dict[tuple[date, str], int] = defaultdict(int)
    cost: dict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for row in rows:
        key = (row["day"], row["model"])
        tokens[key] += (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
        cost[key] += row["cost"] or 0
    names = _series(tokens)
    charts = [
        _chart(_("Tokens by day and model"), tokens, names, _grouped, day_count),
        _chart(_("Cost by day and model"), cost, names, lambda value: f"${value:.4f}", day_count),
    ]
    return [chart for chart in charts if chart.models]


def _grouped(number: int) -> str:
    return formats.number_format(number, force_grouping=True)


def _series(values: Mapping[tuple[date, str], int]) -> list[str]:
    """Return the models with the largest values, followed by a series for all other models."""
    sums: dict[str, int] = defaultdict(int)
    for (_day, model), value in values.items():
        sums[model] += value
    models = sorted(sums, key=lambda model: (-sums[model], model))
    return models[:MAX_SERIES] + [gettext("other models")] * (len(models) > MAX_SERIES)


def _chart(
    label: str | Promise,
    values: Mapping[tuple[date, str], Any],
    names: Sequence[str],
    show: Callable[[Any], str],
    day_count: int,
) -> StackedBars:
    """Return the chart of `values`. `names` assigns each model the same number in all charts."""
    merged: dict[tuple[date, str], Any] = defaultdict(int)
    for (day, model), value in values.items():
        merged[day, model if model in names else names[-1]] += value
    used = {model for (_day, model), value in merged.items() if value}
    models = {number: name for number, name in enumerate(names) if name in used}
    today = timezone.localdate()
    days = [today - timedelta(days=back) for back in range(day_count - 1, -1, -1)]
    return StackedBars(label, days, models, merged, show)
