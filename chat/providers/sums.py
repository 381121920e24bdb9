"""Sums of booked model calls, by day, model, kind, user, project and token."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from chat.models import ANSWERED, Call

# What a sum may be grouped by.
KEYS = ("day", "kind", "model", "user", "project", "token")
FIGURES = ("calls", "unanswered", "input_tokens", "cached_tokens", "output_tokens", "cost")
# The characters that begin a formula in a spreadsheet.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def summed(
    calls: QuerySet[Call], keys: Sequence[str], zone: tzinfo | None = None
) -> QuerySet[Any, dict[str, Any]]:
    """Return a row for each group of `calls`: the `keys` (names as in KEYS) and the FIGURES.

    Days are those of `zone`, by default of the active time zone.
    """
    columns: dict[str, Any] = {
        "day": TruncDate("started_at", tzinfo=zone or timezone.get_current_timezone()),
        "user": F("user__username"),
        "project": F("project__slug"),
        "token": F("token_id"),
    }
    named = {f"by_{key}": columns.get(key, F(key)) for key in keys}
    rows = calls.order_by().annotate(**named).values(*named)
    return rows.annotate(
        calls=Count("pk"),
        unanswered=Count("pk", filter=~Q(outcome=ANSWERED)),
        **{f"sum_{name}": Sum(name) for name in (*FIGURES[2:], "duration_ms")},
    )


def plain_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of `summed` with the names of KEYS and FIGURES."""
    return [
        {name.removeprefix("by_").removeprefix("sum_"): value for name, value in row.items()}
        for row in rows
    ]


def csv_text(value: Any) -> str:
    """Return a value for a cell of CSV, which no spreadsheet takes for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text
