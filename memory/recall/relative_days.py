"""Relative days: the dates that words such as "yesterday" and "two weeks ago" refer to. Pure.

English and German words are recognised, the languages of the pages.
"""

import re
from collections.abc import Iterator
from datetime import date

from memory.recall.wordpieces import WORDS

# The maximum number of characters that are read.
MAX_CHARS = 2_000

_DAYS: dict[str, int] = WORDS["relative_days"]["days"]
_WEEKDAYS: dict[str, int] = WORDS["relative_days"]["weekdays"]
_NUMBERS: dict[str, int] = WORDS["relative_days"]["numbers"]
_UNITS: dict[str, int] = WORDS["relative_days"]["units"]


def _any_of(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_COUNT = rf"(\d{{1,3}}|{_any_of(_NUMBERS)})"
_RELATIVE = re.compile(
    rf"\b(?:({_any_of(_DAYS)})"
    rf"|(?:last|letzten|vergangenen) ({_any_of(_WEEKDAYS)})"
    rf"|{_COUNT} ({_any_of(_UNITS)}) ago"
    rf"|vor {_COUNT} ({_any_of(_UNITS)}))\b",
    re.IGNORECASE,
)


def find_relative_days(text: str, day: date) -> Iterator[date]:
    """Yield the days to which `text`, written on `day`, refers by words relative to `day`.

    A month counts as 30 days. Days outside of the calendar (the years 1 to 9999) are left out.
    """
    for match in _RELATIVE.finditer(text[:MAX_CHARS]):
        ordinal = day.toordinal() + _difference(match, day)
        if 1 <= ordinal <= date.max.toordinal():
            yield date.fromordinal(ordinal)


def _difference(match: re.Match[str], day: date) -> int:
    """Return the number of days from `day` to the day that the match means."""
    near, weekday, count, unit, count_after, unit_after = (
        part and part.lower() for part in match.groups()
    )
    if near:
        return _DAYS[near]
    if weekday:
        return -((day.weekday() - _WEEKDAYS[weekday] - 1) % 7 + 1)
    number = count or count_after
    units = int(number) if number.isdigit() else _NUMBERS[number]
    return -units * _UNITS[unit or unit_after]
