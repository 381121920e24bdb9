"""Sums of booked model calls, by day, model, kind, user, project and token."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from chat.models import ANSWERED, Call

# The keys by which sums can be grouped.
KEYS = ("day", "kind", "model", "user", "project", "token")
FIGURES = ("calls", "unanswered", "input_tokens", "cached_tokens", "output_tokens", "cost")
# Characters that begin a formula in spreadsheets.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def summed(
    calls: QuerySet[Call], keys: Sequence[str], zone: tzinfo | None = None
) -> QuerySet[Any, dict[str, Any]]:
    """Return a row for each group of `calls`, with the `keys` (names in KEYS) and the FIGURES.

    Days are in `zone`, by default in the active time zone.
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
    """Return the rows of `summed` without the prefixes of their names."""
    return [
        {name.removeprefix("by_").removeprefix("sum_"): value for name, value in row.items()}
        for row in rows
    ]


def csv_text(value: Any) -> str:
    """Return a value for a CSV cell that spreadsheets do not interpret as a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text
