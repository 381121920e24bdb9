"""What waits for somebody: the queues that the admin's first page shows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import template
from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chat.models import Import, ImportState
from memory.models import Cursor, Entry, Fact, IndexCursor, Ladder, Standing, State

register = template.Library()


@dataclass(frozen=True)
class Queue:
    """So many rows that wait, and the list in the admin that shows just these."""

    name: Any
    count: int
    address: str


# The name of each, its rows, and the query of the list that shows them.
_QUEUES: tuple[tuple[Any, QuerySet, str], ...] = (
    (
        _("Summaries that wait for review"),
        Entry.objects.filter(state=State.PROPOSED),
        "state=proposed",
    ),
    (
        _("Facts that wait for review"),
        Fact.objects.filter(state=Standing.PROPOSED, retired_at=None),
        "state__exact=proposed",
    ),
    (_("Summaries to be rewritten"), Entry.objects.filter(state=State.STALE), "state=stale"),
    (
        _("Conversations that could not be summarised"),
        Cursor.objects.filter(failures__gt=0),
        "failing=yes",
    ),
    (
        _("Projects that could not be settled"),
        Ladder.objects.filter(failures__gt=0),
        "failing=yes",
    ),
    (
        _("Conversations that could not be indexed"),
        IndexCursor.objects.filter(failures__gt=0),
        "failing=yes",
    ),
    (
        _("Imports that failed"),
        Import.objects.filter(state=ImportState.FAILED),
        f"state__exact={ImportState.FAILED}",
    ),
)


@register.simple_tag(takes_context=True)
def queues(context: dict[str, Any]) -> list[Queue]:
    """Those whose lists the user may open."""
    return list(_open_to(context["request"].user))


def _open_to(user: Any) -> Iterator[Queue]:
    for name, rows, query in _QUEUES:
        model: type[Model] = rows.model
        meta = model._meta
        if user.has_perm(f"{meta.app_label}.view_{meta.model_name}"):
            address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
            yield Queue(name, rows.all().count(), f"{address}?{query}")
