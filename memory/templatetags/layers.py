"""How an entry is called on a page, and how its text is laid out."""

import re
from datetime import date

from django import template
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.layers import periods
from memory.layers.periods import Granularity
from memory.layers.summarising import EXTRACTIVE
from memory.models import Entry

register = template.Library()

LAYERS = {
    Granularity.CONVERSATION: gettext_lazy("conversation"),
    Granularity.DAY: gettext_lazy("day"),
    Granularity.WEEK: gettext_lazy("week"),
    Granularity.MONTH: gettext_lazy("month"),
}
BULLET = re.compile(r"^\s*[-*•]\s+")


@register.filter
def layer(granularity: str) -> str:
    """The layer's name for people."""
    return str(LAYERS[Granularity(granularity)])


@register.filter
def period(entry: Entry) -> str:
    """Its day, week or month: “Thu 12 Mar 2026”."""
    return period_name(Granularity(entry.granularity), entry.period_key)


def period_name(granularity: Granularity, key: str) -> str:
    """As periods.label, which prompts keep in English, in the reader's language."""
    first, last = periods.days(granularity, key)
    if granularity in (Granularity.CONVERSATION, Granularity.DAY):
        return date_format(first, "WEEKDAY_FORMAT")
    if granularity == Granularity.MONTH:
        return date_format(date.fromisoformat(f"{key}-01"), "YEAR_MONTH_FORMAT")
    opening, gap = "DAY_FORMAT", ""
    if first.month != last.month:
        opening, gap = "DATE_FORMAT" if first.year != last.year else "MONTH_DAY_FORMAT", " "
    days = f"{date_format(first, opening)}{gap}–{gap}{date_format(last, 'DATE_FORMAT')}"
    return _("Week %(number)s, %(days)s") % {"number": int(key[-2:]), "days": days}


@register.filter
def quoted(entry: Entry) -> bool:
    """Whether its text, if it may be shown, only quotes what was said."""
    return entry.written_by == EXTRACTIVE and not entry.withheld


@register.filter
def told(entry: Entry) -> str:
    """Its summary, or that this is withheld."""
    return _("Withheld until it is rewritten") if entry.withheld else entry.summary


@register.filter
def headline(entry: Entry) -> str:
    """The first line of its summary, without the bullet."""
    return first_line(told(entry))


def first_line(summary: str) -> str:
    for line in summary.splitlines():
        if words := BULLET.sub("", line).strip():
            return words
    return ""


@register.filter
def points(summary: str) -> list[str]:
    """The bullets of a summary without their marks; empty when it does not begin with one."""
    found: list[str] = []
    for line in filter(str.strip, summary.splitlines()):
        if BULLET.match(line):
            found.append(BULLET.sub("", line).strip())
        elif found:
            found[-1] = f"{found[-1]} {line.strip()}"
        else:
            return []
    return found
