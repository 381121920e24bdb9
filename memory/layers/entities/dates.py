"""Dates and times of day. Normalised forms: 2026-03-03, --03-03, 2026-03, --03, 2026; 14:05."""

import re
from datetime import date

from memory.layers.entities.kinds import WORDS, EntityKind, EntityPattern, Form, alternatives

_MONTHS = {
    name: number for number, names in enumerate(WORDS["months"], 1) for name in names.split()
}
MONTH = rf"(?P<m>{alternatives(_MONTHS)})\b\.?"
# Before a day, a month must be English and capitalised: "we may 5 times …" is no date.
_CAPITAL = (
    r"(?P<m>(?-i:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?))\b\.?"
)
_YEAR = r"(?P<y>(?:19|20)\d\d)(?!\d)"
_DAY = r"(?P<d>[12]\d|3[01]|0?[1-9])"
_MONTH_NUMBER = r"(?P<m>1[0-2]|0?[1-9])"
_ALONE = r"(?<![\w.,:/'-])"
_OF_YEAR = rf"(?:,?\s+{_YEAR})?"
_HOUR = r"(?P<h>[01]?\d|2[0-3])"
_HALF = r"(?P<half>[ap]\.?m\b)"


def _form(year: str | None, month: int, day: int = 0) -> str | None:
    """Return the normalised form of a date, None if it is invalid. A missing month or day is 0."""
    try:
        # The default is a leap year, because 29 February may be written without a year.
        date(int(year or 2024), month or 1, day or 1)
    except ValueError:
        return None
    parts = [f"{number:02}" for number in (month, day) if number]
    return "-".join([year or "-", *parts])


def readings(form: str) -> list[str]:
    """Return the possible dates of `form`: two for 3/4/2026, in which the month is ambiguous."""
    first, slash, rest = form.partition("/")
    if not slash:
        return [form]
    second, _, year = rest.partition("/")
    return [f"{year}-{second:0>2}-{first:0>2}", f"{year}-{first:0>2}-{second:0>2}"]


def parts(form: str) -> list[str]:
    """Return `form` and all less precise forms: --03-03, 2026-03, --03, 2026 for 2026-03-03."""
    forms = [form, form[:7] if form[0] != "-" else form[:4]]
    if form[0] != "-":
        forms += [form[:4], *map(without_year, forms)]
    return forms


def without_year(form: str) -> str:
    """Return --03-03 for 2026-03-03, a form without a year unchanged, and "" for a year alone."""
    return form if form[0] == "-" else form[4:] and f"-{form[4:]}"


def _date(match: re.Match[str]) -> Form | None:
    groups = match.groupdict()
    month = (groups.get("m") or "0").casefold()
    # None for "aprıl", because the expression matches a dotless ı like an i.
    number = int(month) if month.isdigit() else _MONTHS.get(month)
    if number is None:
        return None
    year = groups.get("y")
    year = f"20{year}" if year and len(year) == 2 else year
    form = _form(year, number, int(groups.get("d") or 0))
    return Form(form) if form else None


def _slashed(match: re.Match[str]) -> Form | None:
    first, second = int(match["d"]), int(match["m"])
    year = match["y"] if len(match["y"]) == 4 else f"20{match['y']}"
    if max(first, second) > 12 or first == second:
        form = _form(year, min(first, second), max(first, second))
        return Form(form) if form else None
    return Form(f"{first}/{second}/{year}")


def _time(match: re.Match[str]) -> Form | None:
    groups = match.groupdict()
    hour, half = int(groups["h"]), (groups.get("half") or "")[:1].casefold()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    return Form(f"{hour:02}:{int(groups.get('min') or 0):02}")


_DATES = (
    rf"{_ALONE}(?P<y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d)(?=$|[^\w-]|T\d)",
    rf"{_ALONE}{_DAY}\.{_MONTH_NUMBER}\.(?P<y>(?:19|20)?\d\d)(?!\.?\d)",
    rf"\b(?:{alternatives(WORDS['before_day'])})\s{_DAY}\.{_MONTH_NUMBER}\.(?!\d)",
    # "2–8 March": this pattern matches the first of the two days, the next pattern the second.
    rf"{_ALONE}{_DAY}\.?(?=\s?[–-]\s?\d\d?\.?\s+{MONTH}{_OF_YEAR})",
    rf"(?<![\w.,:/'])-?{_DAY}(?:st|nd|rd|th)?\.?\s+(?:of\s+)?{MONTH}{_OF_YEAR}",
    rf"\b{_CAPITAL}\s+{_DAY}(?:st|nd|rd|th)?(?![\d%]|[.,:]\d){_OF_YEAR}",
    rf"\b{MONTH}\s+{_YEAR}",
    rf"\b(?:{alternatives(WORDS['before_month'])})[\s-]{MONTH}(?!\w)",
)
_TIMES = (
    rf"{_ALONE}T?{_HOUR}:(?P<min>[0-5]\d)(?::[0-5]\d)?(?:\s?{_HALF})?(?![\d:])",
    rf"{_ALONE}{_HOUR}\.(?P<min>[0-5]\d)\sUhr\b",
    rf"{_ALONE}{_HOUR}\s(?:Uhr|o['’]clock)\b",
    rf"{_ALONE}(?P<h>1[0-2]|0?[1-9])\s?{_HALF}",
)


def _pattern(kind: EntityKind, pattern: str) -> EntityPattern:
    form = _date if kind == EntityKind.DATE else _time
    return EntityPattern(kind, re.compile(pattern, re.IGNORECASE), form)


PATTERNS = (
    EntityPattern(
        EntityKind.DATE,
        re.compile(rf"{_ALONE}(?P<d>\d\d?)/(?P<m>\d\d?)/(?P<y>20\d\d|\d\d)(?![\d/])"),
        _slashed,
    ),
    *(_pattern(EntityKind.DATE, pattern) for pattern in _DATES),
    *(_pattern(EntityKind.TIME, pattern) for pattern in _TIMES),
    _pattern(EntityKind.DATE, rf"{_ALONE}{_YEAR}(?![\w%]|[.,:-]\d|\s?[%€$])"),
)
