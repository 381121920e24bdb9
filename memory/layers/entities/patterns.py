"""Patterns of dates, times, numbers and amounts, and the types that all patterns share. Pure.

Normalised forms:

- Dates: 2026-03-03, --03-03, 2026-03, --03, 2026. Times of day: 14:05.
- Numbers: the number with its unit, such as "90 min" and "1200 eur", or "90" for an unknown unit.
  "1,000", "1.000", "1 000" and "1000" have the same form.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

# The maximum number of characters that are read. Summaries are ten times shorter.
MAX_CHARS = 20_000

WORDS: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "words.toml").read_text(encoding="utf-8")
)


class EntityKind(StrEnum):
    NAME = "name"
    DATE = "date"
    TIME = "time"
    NUMBER = "number"
    AMOUNT = "amount"
    PERCENTAGE = "percentage"
    LINK = "link"
    EMAIL = "e-mail"
    IDENTIFIER = "identifier"


@dataclass(frozen=True, slots=True)
class Entity:
    """`text` is the spelling in the text. `form` is the same for all spellings of one entity.

    `significant` is false if the loss of the entity does not matter, as for a bare 3. An
    insignificant entity is no loss; it is only compared with entities of other texts.
    """

    kind: EntityKind
    form: str
    text: str = field(compare=False)
    significant: bool = field(default=True, compare=False)


class Form(NamedTuple):
    form: str
    significant: bool = True


class EntityPattern(NamedTuple):
    """A pattern and the function `form`, which returns the normalised form of a match. If it
    returns None, later patterns may match the same text.

    Each pattern takes time linear in the length of the line, because it starts only at a word
    boundary or has bounded repeats.
    """

    kind: EntityKind
    pattern: re.Pattern[str]
    form: Callable[[re.Match[str]], Form | None]


def alternatives(words: str | Mapping[str, Any]) -> str:
    """Return a pattern for any of `words`, the longest first."""
    names = words.split() if isinstance(words, str) else words
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


# Dates and times of day

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


def _date_form(year: str | None, month: int, day: int = 0) -> str | None:
    """Return the normalised form of a date, None if it is invalid. A missing month or day is 0."""
    try:
        # The default is a leap year, because 29 February may be written without a year.
        date(int(year or 2024), month or 1, day or 1)
    except ValueError:
        return None
    parts = [f"{number:02}" for number in (month, day) if number]
    return "-".join([year or "-", *parts])


def date_readings(form: str) -> list[str]:
    """Return the possible dates of `form`: two for 3/4/2026, in which the month is ambiguous."""
    first, slash, rest = form.partition("/")
    if not slash:
        return [form]
    second, _, year = rest.partition("/")
    return [f"{year}-{second:0>2}-{first:0>2}", f"{year}-{first:0>2}-{second:0>2}"]


def date_parts(form: str) -> list[str]:
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
    form = _date_form(year, number, int(groups.get("d") or 0))
    return Form(form) if form else None


def _slashed(match: re.Match[str]) -> Form | None:
    first, second = int(match["d"]), int(match["m"])
    year = match["y"] if len(match["y"]) == 4 else f"20{match['y']}"
    if max(first, second) > 12 or first == second:
        form = _date_form(year, min(first, second), max(first, second))
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


_DATE_PATTERNS = (
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
_TIME_PATTERNS = (
    rf"{_ALONE}T?{_HOUR}:(?P<min>[0-5]\d)(?::[0-5]\d)?(?:\s?{_HALF})?(?![\d:])",
    rf"{_ALONE}{_HOUR}\.(?P<min>[0-5]\d)\sUhr\b",
    rf"{_ALONE}{_HOUR}\s(?:Uhr|o['’]clock)\b",
    rf"{_ALONE}(?P<h>1[0-2]|0?[1-9])\s?{_HALF}",
)


def _moment(kind: EntityKind, pattern: str) -> EntityPattern:
    form = _date if kind == EntityKind.DATE else _time
    return EntityPattern(kind, re.compile(pattern, re.IGNORECASE), form)


DATES = (
    EntityPattern(
        EntityKind.DATE,
        re.compile(rf"{_ALONE}(?P<d>\d\d?)/(?P<m>\d\d?)/(?P<y>20\d\d|\d\d)(?![\d/])"),
        _slashed,
    ),
    *(_moment(EntityKind.DATE, pattern) for pattern in _DATE_PATTERNS),
    *(_moment(EntityKind.TIME, pattern) for pattern in _TIME_PATTERNS),
    _moment(EntityKind.DATE, rf"{_ALONE}{_YEAR}(?![\w%]|[.,:-]\d|\s?[%€$])"),
)


# Numbers, amounts of money, percentages

# The smallest whole number that is significant without a unit.
_SIGNIFICANT = 10

_DIGITS = r"\d{1,3}(?: \d{3}){1,6}(?!\d)(?:[.,]\d{1,2}(?!\d))?|\d{1,30}(?:[.,'’]\d{1,12}){0,6}"
_NUMBER = rf"(?<![\w.,'’])(?P<digits>{_DIGITS})"


def _by_word(table: dict[str, str]) -> dict[str, str]:
    return {word: key for key, words in table.items() for word in words.split()}


_SCALES = {word: int(power) for word, power in _by_word(WORDS["scales"]).items()}
_LONG_SCALES = alternatives({word: 1 for word in _SCALES if len(word) > 2})
_SCALE = rf"(?P<scale>(?-i:k|K|M|B)(?!\w)|(?:mn|bn)\b|\s?[-]?(?:{_LONG_SCALES})\b\.?(?:\sof\b)?)?"
_CURRENCIES = _by_word(WORDS["currencies"])
_SIGNS = r"[$€£¥₹₽]"
_CURRENCY_NAMES = alternatives({name: 1 for name in _CURRENCIES if name.isalpha()})
_UNITS = _by_word(WORDS["units"])
_UNIT = r"(?:[\s-]?(?P<unit>°?[^\W\d_]{1,14}))?"
_WRITTEN = {
    word: number for number, words in enumerate(WORDS["numbers"], 1) for word in words.split()
}


def _value(match: re.Match[str]) -> Decimal | None:
    """Return the value of a match times its scale word; None if it is no number, as 1.2.3.4."""
    parts = re.split(r"[., '’]", match["digits"])
    separators = re.findall(r"[., '’]", match["digits"])
    decimals = ""
    if separators and not _is_grouped(parts, separators):
        decimals = parts.pop()
        if len(parts) > 1 and not _is_grouped(parts, separators[:-1]):
            return None
    scale = re.sub(r"[\s.-]|of$", "", (match["scale"] or "").casefold())
    return Decimal(f"{''.join(parts)}.{decimals or 0}").scaleb(_SCALES.get(scale, 0))


def _is_grouped(parts: list[str], separators: list[str]) -> bool:
    """Return whether the separators group thousands, as in "1,000,000" but not in "0.125"."""
    first, *others = parts
    return (
        len(set(separators)) == 1
        and 0 < len(first) <= 3
        and not first.startswith("0")
        and all(len(part) == 3 for part in others)
    )


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _amount(match: re.Match[str]) -> Form | None:
    value = _value(match)
    currency = _CURRENCIES.get(match["currency"].casefold())
    if value is None or currency is None:
        return None
    return Form(f"{_plain(value)} {currency}")


def _percentage(match: re.Match[str]) -> Form | None:
    value = _value(match)
    return None if value is None else Form(_plain(value))


def _number(match: re.Match[str]) -> Form | None:
    value = _value(match)
    if value is None:
        return None
    written_unit = (match["unit"] or "").casefold()
    unit = _UNITS.get(written_unit, "")
    significant = bool(unit) or value >= _SIGNIFICANT or value != int(value)
    is_ordinal = written_unit in {"st", "nd", "rd", "th"}
    return Form(f"{_plain(value)} {unit}".strip(), significant and not is_ordinal)


def _written(match: re.Match[str]) -> Form | None:
    number = _WRITTEN.get(match[0].casefold())
    return None if number is None else Form(str(number), significant=False)


NUMBERS = (
    EntityPattern(
        EntityKind.AMOUNT,
        re.compile(
            rf"(?P<currency>US\$|{_SIGNS}|\b(?:USD|EUR|GBP|CHF|JPY|RMB|INR|RUB)\b)\s?"
            rf"(?P<digits>{_DIGITS}){_SCALE}",
            re.IGNORECASE,
        ),
        _amount,
    ),
    EntityPattern(
        EntityKind.AMOUNT,
        re.compile(
            rf"{_NUMBER}{_SCALE}[\s-]?(?P<currency>{_SIGNS}|(?:{_CURRENCY_NAMES})\b)", re.IGNORECASE
        ),
        _amount,
    ),
    EntityPattern(
        EntityKind.PERCENTAGE,
        re.compile(
            rf"{_NUMBER}(?P<scale>)\s?-?(?:%|(?:percent|per\scent|prozent)\b)", re.IGNORECASE
        ),
        _percentage,
    ),
    EntityPattern(
        EntityKind.NUMBER, re.compile(rf"{_NUMBER}{_SCALE}{_UNIT}", re.IGNORECASE), _number
    ),
    EntityPattern(EntityKind.NUMBER, re.compile(r"\b[^\W\d_]{2,12}\b"), _written),
)
