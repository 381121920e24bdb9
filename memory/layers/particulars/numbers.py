"""Numbers, amounts of money, percentages.

Forms: “90 min”, or “90” where the unit is none that is known here; “1200 eur”; 12.5 per cent.
“1,000”, “1.000”, “1 000” and “1000” are the same.
"""

import re
from decimal import Decimal

from memory.layers.particulars.kinds import Form, Kind, Pass

# A number without a unit is one that a reader looks for from here on.
_TELLING = 10

_DIGITS = r"\d{1,3}(?: \d{3}){1,6}(?!\d)(?:[.,]\d{1,2}(?!\d))?|\d{1,30}(?:[.,'’]\d{1,12}){0,6}"
_NUMBER = rf"(?<![\w.,'’])(?P<digits>{_DIGITS})"
_POWERS = {
    3: "k thousand tausend mille mil mila тыс тысяч 千",
    4: "万 萬",
    6: "m mn mio million millions millionen millones millón milioni milhões млн",
    8: "億 亿",
    9: "b bn billion mrd milliarden milliards млрд",
}
_SCALES = {word: power for power, words in _POWERS.items() for word in words.split()}
_LONG_SCALES = "|".join(sorted((word for word in _SCALES if len(word) > 2), key=len, reverse=True))
_SCALE = (
    r"(?P<scale>(?-i:k|K|M|B)(?!\w)|(?:mn|bn)\b"
    rf"|\s?[-]?(?:(?:{_LONG_SCALES})\b\.?|[千万萬億亿])(?:\s(?:de|di|of)\b)?)?"
)
_MONEY = {
    "usd": "$ us$ usd dollar dollars dólares dollari доллар доллара долларов",
    "eur": "€ eur euro euros евро",
    "gbp": "£ gbp pound pounds",
    "chf": "chf franken",
    "jpy": "¥ jpy yen 円",
    "cny": "元 rmb",
    "rub": "₽ rub руб рубль рублей рубля",
    "inr": "₹ inr",
}
_CURRENCIES = {name: code for code, names in _MONEY.items() for name in names.split()}
_SIGNS = r"[$€£¥₹₽円元]"
_CURRENCY_NAMES = "|".join(
    sorted((name for name in _CURRENCIES if name.isalpha()), key=len, reverse=True)
)
_UNIT_NAMES = {
    "ms": "ms msec millisecond milliseconds millisekunden millisecondes "
    "milisegundos мс ミリ秒 毫秒",
    "s": "s sec secs second seconds sekunde sekunden seconde secondes segundo "
    "segundos secondi сек секунд 秒 秒間",
    "min": "min mins minute minutes minuten minuto minutos minuti мин минут минуты "
    "минуту 分 分間 分钟",
    "h": "h hr hrs hour hours std stunde stunden heure heures hora horas ora ore "
    "ч час часа часов 時間 小时",
    "d": "d day days tag tage tagen jour jours día días dia dias giorno giorni "
    "день дня дней 日間 天",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana "
    "settimane неделя недели недель неделю 週間 周",
    "mo": "month months monat monate monaten mois mes meses mese mesi месяц "
    "месяца месяцев ヶ月 か月 カ月 个月",
    "y": "year years jahr jahre jahren ans année années año años anno anni ano "
    "anos год года лет 年間",
    "b": "byte bytes",
    "kb": "kb kib кб",
    "mb": "mb mib мб",
    "gb": "gb gib go гб",
    "tb": "tb tib тб",
    "hz": "hz",
    "khz": "khz",
    "mhz": "mhz",
    "ghz": "ghz",
    "g": "g gram grams gramm грамм",
    "kg": "kg kilo kilos кг",
    "t": "tons tonnes tonnen",
    "m": "m meter meters metre metres mètres metros метров",
    "km": "km kilometer kilometers kilometres kilómetros км",
    "cm": "cm см",
    "mm": "mm мм",
    "mile": "mile miles",
    "l": "l liter liters litre litres litros литров",
    "°c": "°c",
    "w": "watt watts",
    "kw": "kw",
    "kwh": "kwh",
    "px": "px pixel pixels",
    "rps": "rps qps",
    "people": "people persons person personen leute personnes personas persone "
    "pessoas человек 人 名",
    "件": "件",
    "台": "台",
    "個": "個 个",
    "回": "回 次",
    "times": "x times mal fois veces volte vezes раз",
}
_UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
_EAST_ASIAN_UNITS = "|".join(
    sorted((name for name in _UNITS if name >= "\u3000"), key=len, reverse=True)
)
_UNIT = rf"(?:[\s-]?(?P<unit>{_EAST_ASIAN_UNITS}|°?[^\W\d_]{{1,14}}))?"
# Digests write out what stands below them in digits.
_WRITTEN_OUT = (
    "one ein eine einen einem einer un une uno una один одна одно одну",
    "two zwei deux dos due dois duas два две",
    "three drei trois tres tre três три",
    "four vier quatre cuatro quattro quatro четыре",
    "five fünf cinq cinco cinque пять",
    "six sechs seis sei шесть",
    "seven sieben sept siete sette sete семь",
    "eight acht huit ocho otto oito восемь",
    "nine neun neuf nueve nove девять",
    "ten zehn dix diez dieci dez десять",
    "eleven elf onze once undici одиннадцать",
    "twelve zwölf douze doce dodici doze двенадцать",
)
_WRITTEN = {word: number for number, some in enumerate(_WRITTEN_OUT, 1) for word in some.split()}


def _value(match: re.Match[str]) -> Decimal | None:
    """The number of a match, scaled; None for what is none, such as 1.2.3.4."""
    parts = re.split(r"[., '’]", match["digits"])
    separators = re.findall(r"[., '’]", match["digits"])
    decimals = ""
    if separators and not _is_grouped(parts, separators):
        decimals = parts.pop()
        if len(parts) > 1 and not _is_grouped(parts, separators[:-1]):
            return None
    scale = re.sub(r"[\s.-]|(?:de|di|of)$", "", (match["scale"] or "").casefold())
    return Decimal(f"{''.join(parts)}.{decimals or 0}").scaleb(_SCALES.get(scale, 0))


def _is_grouped(parts: list[str], separators: list[str]) -> bool:
    """Whether the separators part thousands: “1,000,000”, not “1.25” and not “0.125”."""
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
    unit = _UNITS.get((match["unit"] or "").casefold(), "")
    is_ordinal = (match["unit"] or "").casefold() in {"st", "nd", "rd", "th"}
    telling = bool(unit) or value >= _TELLING or value != int(value)
    return Form(f"{_plain(value)} {unit}".strip(), telling and not is_ordinal)


def _written(match: re.Match[str]) -> Form | None:
    number = _WRITTEN.get(match[0].casefold())
    return None if number is None else Form(str(number), telling=False)


PASSES = (
    Pass(
        Kind.AMOUNT,
        re.compile(
            rf"(?P<currency>US\$|{_SIGNS}|\b(?:USD|EUR|GBP|CHF|JPY|RMB|INR|RUB)\b)\s?"
            rf"(?P<digits>{_DIGITS}){_SCALE}",
            re.IGNORECASE,
        ),
        _amount,
    ),
    Pass(
        Kind.AMOUNT,
        re.compile(
            rf"{_NUMBER}{_SCALE}[\s-]?(?P<currency>{_SIGNS}|(?:{_CURRENCY_NAMES})\b)", re.IGNORECASE
        ),
        _amount,
    ),
    Pass(
        Kind.PERCENTAGE,
        re.compile(
            rf"{_NUMBER}(?P<scale>)\s?-?(?:%|(?:percent|per\scent|prozent|pour\scent|por\sciento"
            r"|per\scento|por\scento|процент\w{0,3})\b|パーセント)",
            re.IGNORECASE,
        ),
        _percentage,
    ),
    Pass(Kind.NUMBER, re.compile(rf"{_NUMBER}{_SCALE}{_UNIT}", re.IGNORECASE), _number),
    Pass(Kind.NUMBER, re.compile(r"\b[^\W\d_]{2,12}\b"), _written),
)  # fmt: skip
