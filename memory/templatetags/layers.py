"""Filters for entries: layer and period labels, and the layout of a summary."""

import re

from django import template
from django.utils.translation import gettext as _

from memory.layers.periods import LAYER_LABELS, LAYER_TITLES, Granularity, localized_label
from memory.layers.summarising import EXTRACTIVE
from memory.models import Entry
from projects.models import Project

register = template.Library()

BULLET = re.compile(r"^\s*[-*•]\s+")


@register.filter
def kind_label(entry: Entry) -> str:
    """Return what the entry summarises: a file, a chat, a day, a week or a month."""
    return _("file") if entry.file_id else str(LAYER_LABELS[entry.layer])


@register.filter
def layer_title(granularity: str, project: Project) -> str:
    """Return the translated name of a layer of `project`."""
    if granularity == Granularity.CONVERSATION and not project.has_files:
        return _("Chats")
    return str(LAYER_TITLES[Granularity(granularity)])


@register.filter
def period_label(entry: Entry) -> str:
    """Return the entry's day, week or month, such as “Thu 12 Mar 2026”."""
    return localized_label(Granularity(entry.granularity), entry.period_key)


@register.filter
def is_quoted(entry: Entry) -> bool:
    """Return whether the text is quotations (extractive summariser) and not withheld."""
    return entry.written_by == EXTRACTIVE and not entry.withheld


@register.filter
def visible_summary(entry: Entry) -> str:
    """Return the summary, or a placeholder while it is withheld."""
    return _("Hidden until it is rewritten") if entry.withheld else entry.summary


@register.filter
def headline(entry: Entry) -> str:
    """Return the first line of the summary, without its bullet."""
    return first_line(visible_summary(entry))


def first_line(summary: str) -> str:
    lines = (BULLET.sub("", line).strip() for line in summary.splitlines())
    return next(filter(None, lines), "")


@register.filter
def bullets(summary: str) -> list[str]:
    """Return the bullets without their markers; empty if the text does not begin with a bullet."""
    items: list[str] = []
    for line in filter(str.strip, summary.splitlines()):
        if BULLET.match(line):
            items.append(BULLET.sub("", line).strip())
        elif items:
            items[-1] = f"{items[-1]} {line.strip()}"
        else:
            return []
    return items
