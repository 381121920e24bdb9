"""The records that memory keeps of itself."""

from django.contrib import admin

from memory.models import Activity, EntryState, RenderedBank, Tombstone
from projects.admin import LookOnly


@admin.register(Activity)
class ActivityAdmin(LookOnly):
    list_display = ("at", "project", "by", "verb", "period_key", "count", "reason", "cost")
    list_filter = ("verb",)
    list_select_related = ("project", "by")
    date_hierarchy = "at"
    search_fields = ("=entry_id", "=session_id", "=message_id", "project__slug", "by__username")
    ordering = ("-id",)


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
