"""The records that memory keeps of itself."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from chat import files
from memory.models import Activity, EntryState, RenderedBank, Tombstone, Verb
from memory.schedule import still_awaiting
from projects.admin import LookOnly


@admin.register(Activity)
class ActivityAdmin(LookOnly):
    list_display = (
        "at",
        "project",
        "by",
        "verb",
        "whom",
        "role_after",
        "period_key",
        "count",
        "reason",
        "cost",
    )
    list_filter = ("verb",)
    list_select_related = ("project", "by", "whom")
    date_hierarchy = "at"
    search_fields = ("=entry_id", "=session_id", "=message_id", "project__slug", "by__username")
    ordering = ("-id",)
    change_form_template = "admin/memory/activity/change_form.html"

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        act = kwargs.get("obj")
        if act is not None and act.verb == Verb.FORGOTTEN:
            context["waiting"] = still_awaiting(act)
            context["files"] = files.left_by(act.project_id, act.pk)
        return super().render_change_form(request, context, *args, **kwargs)


@admin.register(Tombstone)
class TombstoneAdmin(LookOnly):
    list_display = ("kind", "subject", "project", "at")
    list_filter = ("kind",)
    list_select_related = ("project",)
    date_hierarchy = "at"
    search_fields = ("=subject", "project__slug")
    ordering = ("-id",)


@admin.register(EntryState)
class EntryStateAdmin(LookOnly):
    list_display = ("entry", "project", "since", "state", "pinned", "withheld", "revision")
    list_filter = ("state",)
    list_select_related = ("entry", "project")
    date_hierarchy = "since"
    search_fields = ("=entry__id", "project__slug")
    ordering = ("-id",)


@admin.register(RenderedBank)
class RenderedBankAdmin(LookOnly):
    list_display = ("project", "version", "tokens")
    list_select_related = ("project",)
    search_fields = ("project__slug", "project__name")
    ordering = ("-pk",)
    # It holds what was made of private sessions; the entries' own pages tell who read those.
    exclude = ("text",)
