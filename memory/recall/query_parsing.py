"""Parsing of recall queries: the kind of answer that they ask for, and the dates in them. Pure."""

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date

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
_LATEST = re.compile(
    r"\b(?:now|latest|current|currently|still|these days|recent|recently|updated?|today|final)\b",
    re.IGNORECASE,
)
_OF_SELF = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine)\b")
_WORD = re.compile(r"[^\W\d_]+")
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTH = "|".join(_MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:{_DAY}(?: of)? )?({_MONTH})\b(?:[ ,]+{_DAY}\b(?!\d))?(?:,? (?:of )?((?:19|20)\d\d))?",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
# Without a day or year, "May" counts as a month only after one of these words.
_MONTH_OF_MAY = re.compile(
    r"\b(?:in|of|on|by|during|since|until|last|this|early|late|mid) may\b", re.IGNORECASE
)
# The first and last month of each season. Winter is not listed, because it crosses the new year:
# `find_dates` handles it.
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11)}
_SEASON = re.compile(
    r"\b(?:in|during|of|this|last|over|that) (?:the )?(?:early |late )?"
    r"(spring|summer|autumn|fall|winter)\b",
    re.IGNORECASE,
)
# The minimum length of a prefix that is recognised as a name.
MIN_NAME_PREFIX = 3
# A query of up to MAX_QUESTION_WORDS words counts as a question, and one of at least
# MIN_MESSAGE_WORDS words as a message. Of 965 questions about past conversations, half have at most
# 10 words and one in twenty more than 24; half of 726 messages that continue a chat have at least
# 40.
MAX_QUESTION_WORDS = 15
MIN_MESSAGE_WORDS = 40


@dataclass(frozen=True)
class DateRange:
    """The first and last day, as (year, month, day). Without a year, the range is in every year."""

    first: tuple[int | None, int, int]
    last: tuple[int | None, int, int]

    @classmethod
    def of(cls, year: int | None, month: int, day: int | None) -> "DateRange":
        """Return the range of one day, or of the whole month if `day` is None."""
        return cls((year, month, day or 1), (year, month, day or 31))

    def distance(self, day: date) -> int:
        """Return the days from the range to `day`: negative before, 0 inside, positive after."""
        years = [self.first[0]] if self.first[0] else [day.year - 1, day.year, day.year + 1]
        # A season that begins in the last year of the calendar would end after it.
        known = [year for year in years if MINYEAR <= year < MAXYEAR]
        return min((self._distance(day, year) for year in known), key=abs)

    def _distance(self, day: date, year: int) -> int:
        crosses_new_year = self.last[1:] < self.first[1:]
        first = _existing_day(year, *self.first[1:])
        last = _existing_day(year + crosses_new_year, *self.last[1:])
        if day < first:
            return (day - first).days
        return max((day - last).days, 0)


def _existing_day(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


@dataclass(frozen=True)
class ParsedQuery:
    """A query, the kind of answer that it asks for, and the dates that it mentions.

    `message_share` is 0 for a question about the past and 1 for a message that continues a chat. It
    depends on the length, and increases linearly between MAX_QUESTION_WORDS and MIN_MESSAGE_WORDS.
    """

    text: str
    asks_when: bool
    asks_names: bool
    asks_latest: bool
    asks_of_self: bool
    message_share: float
    dates: tuple[DateRange, ...]
    words: frozenset[str]

    def mentions(self, speaker: str) -> bool:
        """Return whether the query has a name of `speaker`, or the beginning of one (Mel for
        Melanie).
        """
        return any(
            word == name or (len(word) >= MIN_NAME_PREFIX and name.startswith(word))
            for name in map(str.lower, _WORD.findall(speaker))
            if len(name) >= 2
            for word in self.words
        )


def parse_query(text: str) -> ParsedQuery:
    """Return `text` with the kind of answer that it asks for, its dates and its words."""
    excess = len(text.split()) - MAX_QUESTION_WORDS
    share = excess / (MIN_MESSAGE_WORDS - MAX_QUESTION_WORDS)
    return ParsedQuery(
        text=text,
        asks_when=bool(_WHEN.search(text)),
        asks_names=bool(_NAMES.search(text)),
        asks_latest=bool(_LATEST.search(text)),
        asks_of_self=bool(_OF_SELF.search(text)),
        message_share=min(max(share, 0.0), 1.0),
        dates=tuple(find_dates(text)),
        words=frozenset(word.lower() for word in _WORD.findall(text)),
    )


def remove_names(text: str, speakers: Iterable[str]) -> str:
    """Return `text` without the names of `speakers`, because the speaker is scored separately."""
    names = {name.lower() for speaker in speakers for name in _WORD.findall(speaker)}

    def is_name(word: str) -> bool:
        is_prefix = any(name.startswith(word) for name in names)
        return word in names or (len(word) >= MIN_NAME_PREFIX and is_prefix)

    return _WORD.sub(lambda word: "" if is_name(word[0].lower()) else word[0], text)


def find_dates(text: str) -> Iterator[DateRange]:
    """Yield the days, months and seasons in `text`, or if there are none, the years."""
    found = False
    for match in _ISO_DATE.finditer(text):
        if 1 <= int(match[2]) <= 12:
            found = True
            yield DateRange.of(int(match[1]), int(match[2]), _day_number(match[3]))
    for match in _DATE.finditer(text):
        day_before, month, day_after, year = match.groups()
        is_bare = not (day_before or day_after or year)
        if month.lower() == "may" and is_bare and not _MONTH_OF_MAY.search(text):
            continue
        found = True
        day = _day_number(day_before or day_after)
        yield DateRange.of(int(year) if year else None, _MONTHS[month.lower()], day)
    for match in _SEASON.finditer(text):
        found = True
        first, last = _SEASONS.get(match[1].lower(), (12, 2))
        yield DateRange((None, first, 1), (None, last, 31))
    if not found:
        for match in _YEAR.finditer(text):
            yield DateRange((int(match[1]), 1, 1), (int(match[1]), 12, 31))


def _day_number(text: str | None) -> int | None:
    return int(text) if text and 1 <= int(text) <= 31 else None
