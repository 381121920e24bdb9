"""Sums of model calls by user, model and day, for replies and for memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.views.charts.usage import SUM_DAYS, StackedBars, model_calls, usage_charts

__all__ = ["SUM_DAYS", "usage_sums"]

MAX_SUM_ROWS = 31


@dataclass
class UsageSum:
    """Sums of the calls of one user, model or day. `cost` is in US dollars, or None if no price is
    known.
    """

    name: str | date
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None

    def add(self, row: dict[str, Any]) -> None:
        self.calls += row["calls"]
        self.input_tokens += row["input_tokens"] or 0
        self.output_tokens += row["output_tokens"] or 0
        if row["cost"] is not None:
            self.cost = (self.cost or Decimal(0)) + row["cost"]


class UsageTable(NamedTuple):
    title: str | Promise
    rows: list[UsageSum]


def usage_sums() -> tuple[list[UsageTable], list[StackedBars]]:
    """Return tables and charts of the model calls of the last SUM_DAYS days, by user, model and
    day.

    Calls of automatic work have no user.
    """
    automatic = gettext("Strata (automatic)")
    rows = [row | {"user": row["user"] or automatic} for row in model_calls()]
    tables = [
        UsageTable(_("By user"), _largest_first(_sums(rows, "user"))),
        UsageTable(_("By model"), _largest_first(_sums(rows, "model"))),
        UsageTable(_("By day"), sorted(_sums(rows, "day"), key=lambda row: row.name, reverse=True)),
    ]
    return tables, usage_charts(rows)


def _sums(rows: list[dict[str, Any]], key: str) -> Iterable[UsageSum]:
    sums: dict[Any, UsageSum] = {}
    for row in rows:
        sums.setdefault(row[key], UsageSum(row[key])).add(row)
    return sums.values()


def _largest_first(sums: Iterable[UsageSum]) -> list[UsageSum]:
    by_tokens = sorted(sums, key=lambda row: row.input_tokens + row.output_tokens, reverse=True)
    return by_tokens[:MAX_SUM_ROWS]
