"""Work queues on the first page of the admin: the number of items that need attention."""

from typing import Any

from django import template
from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chat.models import Import, ImportState
from memory.models import Cursor, Entry, EntryStatus, Fact, FactStatus, IndexCursor, Ladder

register = template.Library()

# For each queue: its label, its rows, and the query string of the admin list that shows them.
QUEUES: tuple[tuple[Any, QuerySet, str], ...] = (
    (
        _("Memories to review"),
        Entry.objects.filter(state=EntryStatus.PROPOSED),
        "state__exact=proposed",
    ),
    (
        _("Facts to review"),
        Fact.objects.filter(state=FactStatus.PROPOSED, retired_at=None),
        "state__exact=proposed&retired_at__isempty=1",
    ),
    (_("Memories to rewrite"), Entry.objects.filter(state=EntryStatus.STALE), "state__exact=stale"),
    (_("Chats that could not be summarised"), Cursor.objects.filter(failures__gt=0), "failing=yes"),
    (
        _("Projects whose memories could not be merged"),
        Ladder.objects.filter(failures__gt=0),
        "failing=yes",
    ),
    (
        _("Chats that could not be indexed"),
        IndexCursor.objects.filter(failures__gt=0),
        "failing=yes",
    ),
    (
        _("Failed imports"),
        Import.objects.filter(state=ImportState.FAILED),
        f"state__exact={ImportState.FAILED}",
    ),
)


@register.simple_tag(takes_context=True)
def admin_queues(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return `name`, `count` and `address` of each queue that the user may open."""
    user, queues = context["request"].user, []
    for name, rows, query in QUEUES:
        model: type[Model] = rows.model
        meta = model._meta
        if user.has_perm(f"{meta.app_label}.view_{meta.model_name}"):
            address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
            queues.append(
                {"name": name, "count": rows.all().count(), "address": f"{address}?{query}"}
            )
    return queues
