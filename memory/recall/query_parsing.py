"""What a question asks for beside its words: a time, a name, days it names. Pure."""

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

_WHEN = re.compile(
    r"\bwhen\b|^(?:what|which) (?:date|day|month|year|time)|^how long\b|^in (?:what|which) "
    r"(?:month|year)",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"\bwho(?:se)?\b|\bwhere\b|\bnames?\b|\bcalled\b|\b(?:what|which) "
    r"(?:city|cities|country|countries|place|state|book|movie|game)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTH = "|".join(_MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:{_DAY}(?: of)? )?({_MONTH})\b(?:[ ,]+{_DAY}\b(?!\d))?(?:,? (?:of )?((?:19|20)\d\d))?",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
# "May" is a month only where the words around it say so.
_MAY = re.compile(r"\b(?:in|of|on|by|during|since|until|last|this|early|late|mid) may\b", re.I)
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11)}
_SEASON = re.compile(
    r"\b(?:in|during|of|this|last|over|that) (?:the )?(?:early |late )?"
    r"(spring|summer|autumn|fall|winter)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Days:
    """From one day to another, both included; without a year, of any year."""

    first: tuple[int | None, int, int]
    last: tuple[int | None, int, int]

    def distance(self, day: date) -> int:
        """How many days `day` lies after the last one (positive) or before the first (negative)."""
        years = [self.first[0]] if self.first[0] else [day.year - 1, day.year, day.year + 1]
        return min((self._distance(day, year) for year in years if year), key=abs)

    def _distance(self, day: date, year: int) -> int:
        turns = self.last[1:] < self.first[1:]
        first, last = _day(year, *self.first[1:]), _day(year + turns, *self.last[1:])
        if day < first:
            return (day - first).days
        return max((day - last).days, 0)


def _day(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


@dataclass(frozen=True)
class Question:
    """A question taken apart: what kind of answer it wants, and the days it names."""

    text: str
    asks_when: bool
    asks_names: bool
    days: tuple[Days, ...]
    words: frozenset[str]

    def names(self, speaker: str) -> bool:
        """Whether it names `speaker`, by any of their names or the beginning of one: Mel, Melanie.

        A beginning counts from three letters on.
        """
        return any(
            word == name or (len(word) >= 3 and name.startswith(word))
            for name in map(str.lower, _WORD.findall(speaker))
            if len(name) >= 2
            for word in self.words
        )


def read(text: str) -> Question:
    return Question(
        text=text,
        asks_when=bool(_WHEN.search(text)),
        asks_names=bool(_NAMES.search(text)),
        days=tuple(_days(text)),
        words=frozenset(word.lower() for word in _WORD.findall(text)),
    )


def without(text: str, names: Iterable[str]) -> str:
    """`text` without the names of speakers, which are met by who speaks and not by what is said."""
    known = {name.lower() for full in names for name in _WORD.findall(full)}
    return _WORD.sub(lambda word: "" if _is_name(word[0].lower(), known) else word[0], text)


def _is_name(word: str, known: set[str]) -> bool:
    return word in known or (len(word) >= 3 and any(name.startswith(word) for name in known))


def _days(text: str) -> Iterator[Days]:
    found = False
    for match in _ISO.finditer(text):
        if 1 <= int(match[2]) <= 12:
            found = True
            yield _stretch(int(match[1]), int(match[2]), _day_number(match[3]))
    for match in _DATE.finditer(text):
        before, name, after, year = match.groups()
        bare = not (before or after or year)
        if name.lower() == "may" and bare and not _MAY.search(text):
            continue
        found = True
        day = _day_number(before or after)
        yield _stretch(int(year) if year else None, _MONTHS[name.lower()], day)
    for match in _SEASON.finditer(text):
        found = True
        first, last = _SEASONS.get(match[1].lower(), (12, 2))
        yield Days((None, first, 1), (None, last, 31))
    if not found:
        for match in _YEAR.finditer(text):
            yield Days((int(match[1]), 1, 1), (int(match[1]), 12, 31))


def _stretch(year: int | None, month: int, day: int | None) -> Days:
    return Days((year, month, day or 1), (year, month, day or 31))


def _day_number(text: str | None) -> int | None:
    return int(text) if text and 1 <= int(text) <= 31 else None
