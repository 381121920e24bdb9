"""Numbers, amounts of money, percentages.

The normalised form is a number with its unit: "90 min", "1200 eur", or "90" for an unknown unit.
"1,000", "1.000", "1 000" and "1000" have the same form.
"""

import re
from decimal import Decimal

from memory.layers.entities.kinds import WORDS, EntityKind, EntityPattern, Form, alternatives

# The smallest number that is significant without a unit.
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


PATTERNS = (
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
