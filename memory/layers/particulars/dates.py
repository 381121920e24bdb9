"""Dates and times of day. Forms: 2026-03-03, --03-03, 2026-03, --03, 2026; 14:05."""

import re
from datetime import date

from memory.layers.particulars.kinds import Form, Kind, Pass

# English, German, French, Spanish, Italian, Portuguese, Russian; abbreviations where they are no
# other word.
_NAMES = (
    "january jan januar jänner janvier janv enero ene gennaio janeiro января январь январе янв",
    "february feb februar février févr febrero febbraio fevereiro февраля февраль феврале фев",
    "march mar märz mär mars marzo março марта март марте",
    "april apr avril avr abril abr aprile апреля апрель апреле апр",
    "may mai mayo maggio maio мая май мае",
    "june jun juni juin junio giugno junho июня июнь июне",
    "july jul juli juillet juil julio luglio julho июля июль июле",
    "august aug août agosto августа август августе авг",
    "september sept sep septembre septiembre settembre setembro сентября сентябрь сентябре",
    "october oct oktober okt octobre octubre ottobre outubro октября октябрь октябре окт",
    "november nov novembre noviembre novembro ноября ноябрь ноябре",
    "december dec dezember dez décembre déc diciembre dic dicembre dezembro декабря декабре",
)
_NUMBERS = {name: number for number, some in enumerate(_NAMES, 1) for name in some.split()}
_ANY = "|".join(sorted(_NUMBERS, key=len, reverse=True))
MONTH = rf"(?P<m>{_ANY})\b\.?"
# Before its day, a month is English and has a capital: “we may 5 times …” is no date.
_CAPITAL = (
    r"(?P<m>(?-i:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?))\b\.?"
)
_YEAR = r"(?P<y>(?:19|20)\d\d)(?!\d)"
_DAY = r"(?P<d>[12]\d|3[01]|0?[1-9])"
_MONTH_NUMBER = r"(?P<m>1[0-2]|0?[1-9])"
_ALONE = r"(?<![\w.,:/'-])"
_OF_YEAR = rf"(?:,?\s+(?:del?\s+)?{_YEAR})?"
# What stands before a month that has neither day nor year.
_IN = (
    r"\b(?:in|by|until|till|since|from|to|through|during|of|early|mid|late|next|last|this"
    r"|im|bis|ab|seit|anfang|mitte|ende|en|fin|début|mi|depuis|jusqu'en|desde|hasta|finales\sde"
    r"|a|entro|da|fino\sa|em|até|в|до|с|к)[\s-]"
)
_HOUR = r"(?P<h>[01]?\d|2[0-3])"
_HALF = r"(?P<half>[ap]\.?m\b)"
_YEARS = r"(?P<y>20\d\d|\d\d)"
_MOON = r"(?P<m>\d\d?)\s?[月월]"
_SUN = r"(?P<d>\d\d?)\s?[日号일]"


def _form(year: str | None, month: int, day: int = 0) -> str | None:
    """The form of a date; month and day 0 where they are missing. None for no date."""
    try:
        # A leap year, since 29 February may stand without its year.
        date(int(year or 2024), month or 1, day or 1)
    except ValueError:
        return None
    parts = [f"{number:02}" for number in (month, day) if number]
    return "-".join([year or "-", *parts])


def readings(form: str) -> list[str]:
    """The dates that `form` may be: two for 3/4/2026, of which nobody knows the month."""
    first, slash, rest = form.partition("/")
    if not slash:
        return [form]
    second, _, year = rest.partition("/")
    return [f"{year}-{second:0>2}-{first:0>2}", f"{year}-{first:0>2}-{second:0>2}"]


def parts(form: str) -> list[str]:
    """What a date tells: 2026-03-03 is --03-03, 2026-03, --03 and 2026 too."""
    told = [form, form[:7] if form[0] != "-" else form[:4]]
    if form[0] != "-":
        told += [form[:4], *map(without_year, told)]
    return told


def without_year(form: str) -> str:
    """--03-03 for 2026-03-03; the same for what has no year, empty for a year alone."""
    return form if form[0] == "-" else form[4:] and f"-{form[4:]}"


def _date(match: re.Match[str]) -> Form | None:
    found = match.groupdict()
    month = (found.get("m") or "0").casefold()
    # Without a number: “aprıl”, in which the expression takes a dotless ı for an i.
    number = int(month) if month.isdigit() else _NUMBERS.get(month)
    year = found.get("y")
    if number is None:
        return None
    year = f"20{year}" if year and len(year) == 2 else year
    form = _form(year, number, int(found.get("d") or 0))
    return Form(form) if form else None


def _slashed(match: re.Match[str]) -> Form | None:
    first, second = int(match["d"]), int(match["m"])
    year = match["y"] if len(match["y"]) == 4 else f"20{match['y']}"
    if max(first, second) > 12 or first == second:
        form = _form(year, min(first, second), max(first, second))
        return Form(form) if form else None
    return Form(f"{first}/{second}/{year}")


def _time(match: re.Match[str]) -> Form | None:
    found = match.groupdict()
    hour, half = int(found["h"]), (found.get("half") or "")[:1].casefold()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    return Form(f"{hour:02}:{int(found.get('min') or 0):02}")


def _pass(kind: Kind, pattern: str) -> Pass:
    return Pass(kind, re.compile(pattern, re.IGNORECASE), _date if kind == Kind.DATE else _time)


PASSES = (
    _pass(Kind.DATE, rf"{_ALONE}(?P<y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d)(?=$|[^\w-]|T\d)"),
    _pass(Kind.DATE, rf"{_ALONE}{_DAY}\.{_MONTH_NUMBER}\.(?P<y>(?:19|20)?\d\d)(?!\.?\d)"),
    _pass(Kind.DATE, rf"\b(?:am|vom|bis|ab|zum|den|seit|der)\s{_DAY}\.{_MONTH_NUMBER}\.(?!\d)"),
    Pass(Kind.DATE, re.compile(rf"{_ALONE}(?P<d>\d\d?)/(?P<m>\d\d?)/{_YEARS}(?![\d/])"), _slashed),
    # Spaces stand between East Asian signs and what is none, see `names.spaced`.
    _pass(Kind.DATE, rf"\b(?P<y>\d{{4}})\s?[年년]\s?{_MOON}\s?{_SUN}"),
    _pass(Kind.DATE, rf"\b(?P<y>\d{{4}})\s?[年년]\s?{_MOON}"),
    _pass(Kind.DATE, rf"\b{_MOON}\s?{_SUN}"),
    # “2–8 March”: the first of two days, the second of which is found next.
    _pass(Kind.DATE, rf"{_ALONE}{_DAY}\.?(?=\s?[–-]\s?\d\d?\.?\s+{MONTH}{_OF_YEAR})"),
    _pass(
        Kind.DATE,
        rf"(?<![\w.,:/'])-?{_DAY}(?:st|nd|rd|th|er|º|ª)?\.?\s+(?:de\s+|of\s+)?{MONTH}{_OF_YEAR}",
    ),
    _pass(Kind.DATE, rf"\b{_CAPITAL}\s+{_DAY}(?:st|nd|rd|th)?(?![\d%]|[.,:]\d){_OF_YEAR}"),
    _pass(Kind.DATE, rf"\b{MONTH}\s+(?:del?\s+)?{_YEAR}"),
    _pass(Kind.DATE, rf"{_IN}{MONTH}(?!\w)"),
    _pass(Kind.TIME, rf"{_ALONE}T?{_HOUR}:(?P<min>[0-5]\d)(?::[0-5]\d)?(?:\s?{_HALF})?(?![\d:])"),
    _pass(Kind.TIME, rf"{_ALONE}{_HOUR}h(?P<min>[0-5]\d)\b"),
    _pass(Kind.TIME, rf"{_ALONE}{_HOUR}\.(?P<min>[0-5]\d)\sUhr\b"),
    _pass(Kind.TIME, rf"{_ALONE}{_HOUR}\s(?:Uhr|o['’]clock)\b"),
    _pass(Kind.TIME, rf"{_ALONE}(?P<h>1[0-2]|0?[1-9])\s?{_HALF}"),
    _pass(Kind.TIME, r"\b(?P<h>\d\d?)\s?[時点](?!間)\s?(?:(?P<min>\d\d?)\s?分)?"),
    _pass(Kind.DATE, rf"{_ALONE}{_YEAR}(?![\w%]|[.,:-]\d|\s?[%€$])"),
)  # fmt: skip
