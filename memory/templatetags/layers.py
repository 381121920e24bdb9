"""How an entry is called on a page."""

from django import template

from memory.layers import periods
from memory.layers.periods import Granularity
from memory.models import Entry

register = template.Library()


@register.filter
def period(entry: Entry) -> str:
    """Its day, week or month: “Thu 12 Mar 2026”."""
    return periods.label(Granularity(entry.granularity), entry.period_key)


@register.filter
def headline(entry: Entry) -> str:
    """The first line of its summary, without the bullet."""
    for line in entry.summary.splitlines():
        if words := line.strip().lstrip("-*• ").strip():
            return words
    return ""
