"""Periods and their keys: which day, week and month something belongs to.

Only conversation entries take a key from time: the day of their last message, in the project's
zone. A week follows from the day's key and a month from the week's, so a key never moves when the
zone is changed later, and a week belongs to exactly one month: that of its Thursday (ISO 8601).
"""

from datetime import date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo


class Granularity(StrEnum):
    """The layers, youngest first."""

    CONVERSATION = "conversation"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def depth(self) -> int:
        """0 for conversations, 3 for months."""
        return list(Granularity).index(self)

    @property
    def older(self) -> "Granularity | None":
        """The layer that this one settles into; None for the oldest."""
        layers = list(Granularity)
        place = layers.index(self) + 1
        return layers[place] if place < len(layers) else None


def day_key(instant: datetime, zone: ZoneInfo) -> str:
    """The day of an aware `instant` in `zone`: “2026-11-21”. Raises ValueError for a naive one."""
    if instant.tzinfo is None:
        raise ValueError("A period key needs an instant with a time zone.")
    return instant.astimezone(zone).date().isoformat()


def week_of(day: str) -> str:
    """The ISO week of a day's key: “2026-W47”."""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year:04}-W{week:02}"


def month_of(week: str) -> str:
    """The month of a week's key, which is that of its Thursday: “2026-11”."""
    return (_monday(week) + timedelta(days=3)).isoformat()[:7]


def parent_key(granularity: Granularity, key: str) -> str:
    """The key of the next older period that holds this one. Raises ValueError for a month."""
    if granularity == Granularity.CONVERSATION:
        return key
    if granularity == Granularity.DAY:
        return week_of(key)
    if granularity == Granularity.WEEK:
        return month_of(key)
    raise ValueError("A month belongs to no older period.")


def ancestor_key(granularity: Granularity, key: str, into: Granularity) -> str:
    """The key of the period of layer `into`, older than `granularity`, that holds this one."""
    while granularity.depth < into.depth:
        key, granularity = parent_key(granularity, key), list(Granularity)[granularity.depth + 1]
    return key


def days(granularity: Granularity, key: str) -> tuple[date, date]:
    """The first and the last day of a period; a month's are those of its weeks."""
    if granularity in (Granularity.CONVERSATION, Granularity.DAY):
        day = date.fromisoformat(key)
        return day, day
    if granularity == Granularity.WEEK:
        return _monday(key), _monday(key) + timedelta(days=6)
    first = _first_thursday(key)
    following = _first_thursday((first + timedelta(days=31)).isoformat()[:7])
    return first - timedelta(days=3), following - timedelta(days=4)


def label(granularity: Granularity, key: str) -> str:
    """A period's name for people: “Thu 12 Mar 2026”, “Week 10, 2–8 Mar 2026”, “March 2026”."""
    first, last = days(granularity, key)
    if granularity in (Granularity.CONVERSATION, Granularity.DAY):
        return f"{first:%a} {first.day} {first:%b %Y}"
    if granularity == Granularity.MONTH:
        return f"{date.fromisoformat(key + '-01'):%B %Y}"
    opening = f"{first.day}"
    if first.year != last.year:
        opening = f"{first.day} {first:%b %Y} "
    elif first.month != last.month:
        opening = f"{first.day} {first:%b} "
    closing = f"{last.day} {last:%b %Y}"
    gap = " " if " " in opening else ""
    return f"Week {int(key[-2:])}, {opening.strip()}{gap}–{gap}{closing}"


def _monday(week: str) -> date:
    return date.fromisocalendar(int(week[:4]), int(week[-2:]), 1)


def _first_thursday(month: str) -> date:
    first = date.fromisoformat(month + "-01")
    return first + timedelta(days=(3 - first.weekday()) % 7)
