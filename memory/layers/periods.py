"""Layers and periods: the keys of days, weeks and months, and their labels. Pure.

Only conversation entries take their key from a time: the day of their last message in the project's
time zone. The key of a week is computed from the key of a day, and the key of a month from the key
of a week. Therefore keys do not change when the time zone does. A week belongs to exactly one
month, the month of its Thursday (ISO 8601).
"""

from datetime import date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


class Granularity(StrEnum):
    """The layers, youngest first."""

    CONVERSATION = "conversation"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def depth(self) -> int:
        """The distance from the youngest layer: 0 for conversations, 3 for months."""
        return list(Granularity).index(self)

    @property
    def older(self) -> "Granularity | None":
        """The layer that this layer rolls up into; None for the oldest."""
        return next((layer for layer in Granularity if layer.depth == self.depth + 1), None)


# The names of entries by layer, in the reader's language. An entry of a file has its own.
LAYER_LABELS = {
    Granularity.CONVERSATION: gettext_lazy("chat"),
    Granularity.DAY: gettext_lazy("day"),
    Granularity.WEEK: gettext_lazy("week"),
    Granularity.MONTH: gettext_lazy("month"),
}
# The names of the layers.
LAYER_TITLES = {
    Granularity.CONVERSATION: gettext_lazy("Chats and files"),
    Granularity.DAY: gettext_lazy("Days"),
    Granularity.WEEK: gettext_lazy("Weeks"),
    Granularity.MONTH: gettext_lazy("Months"),
}


def day_key(instant: datetime, zone: ZoneInfo) -> str:
    """Return the day of an aware `instant` in `zone`: “2026-11-21”. Raises ValueError."""
    if instant.tzinfo is None:
        raise ValueError("A period key needs an instant with a time zone.")
    return instant.astimezone(zone).date().isoformat()


def week_of(day: str) -> str:
    """Return the ISO week of a day's key: “2026-W47”."""
    year, week, _weekday = date.fromisoformat(day).isocalendar()
    return f"{year:04}-W{week:02}"


def month_of(week: str) -> str:
    """Return the month of a week's key, which is that of its Thursday: “2026-11”."""
    return (_monday(week) + timedelta(days=3)).isoformat()[:7]


def parent_key(granularity: Granularity, key: str) -> str:
    """Return the key of the period one layer up. Raises ValueError for a month."""
    if granularity == Granularity.CONVERSATION:
        return key
    if granularity == Granularity.DAY:
        return week_of(key)
    if granularity == Granularity.WEEK:
        return month_of(key)
    raise ValueError("A month belongs to no older period.")


def ancestor_key(granularity: Granularity, key: str, into: Granularity) -> str:
    """Return the key of the period of the older layer `into` that contains this one."""
    while granularity.depth < into.depth:
        key, granularity = parent_key(granularity, key), list(Granularity)[granularity.depth + 1]
    return key


def days(granularity: Granularity, key: str) -> tuple[date, date]:
    """Return the first and the last day of a period. A month consists of whole weeks."""
    if granularity in (Granularity.CONVERSATION, Granularity.DAY):
        day = date.fromisoformat(key)
        return day, day
    if granularity == Granularity.WEEK:
        return _monday(key), _monday(key) + timedelta(days=6)
    first = _first_thursday(key)
    following = _first_thursday((first + timedelta(days=31)).isoformat()[:7])
    return first - timedelta(days=3), following - timedelta(days=4)


def label(granularity: Granularity, key: str) -> str:
    """Return the English name that prompts use.

    “Thu 12 Mar 2026”, “Week 10, 2–8 Mar 2026”, “March 2026”.
    """
    first, last = days(granularity, key)
    if granularity in (Granularity.CONVERSATION, Granularity.DAY):
        return f"{first:%a} {first.day} {first:%b %Y}"
    if granularity == Granularity.MONTH:
        return f"{date.fromisoformat(key + '-01'):%B %Y}"
    start, dash = f"{first.day}", "–"
    if first.month != last.month:
        start, dash = f"{first.day} {first:%b}", " – "
    if first.year != last.year:
        start += f" {first.year}"
    return f"Week {int(key[-2:])}, {start}{dash}{last.day} {last:%b %Y}"


def localized_label(granularity: Granularity, key: str) -> str:
    """Return the label of a period in the reader's language; otherwise like `label`."""
    first, last = days(granularity, key)
    if granularity in (Granularity.CONVERSATION, Granularity.DAY):
        return date_format(first, "WEEKDAY_FORMAT")
    if granularity == Granularity.MONTH:
        return date_format(date.fromisoformat(f"{key}-01"), "YEAR_MONTH_FORMAT")
    first_format, dash = "DAY_FORMAT", "–"
    if first.month != last.month:
        first_format, dash = "MONTH_DAY_FORMAT", " – "
    if first.year != last.year:
        first_format = "DATE_FORMAT"
    name = f"{date_format(first, first_format)}{dash}{date_format(last, 'DATE_FORMAT')}"
    return _("Week %(number)s, %(days)s") % {"number": int(key[-2:]), "days": name}


def _monday(week: str) -> date:
    return date.fromisocalendar(int(week[:4]), int(week[-2:]), 1)


def _first_thursday(month: str) -> date:
    first = date.fromisoformat(month + "-01")
    return first + timedelta(days=(3 - first.weekday()) % 7)
