"""What is kept, and how far memory has come, in the admin."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator

from memory.models import Cursor, Entry, EntryRevision, Ladder
from projects.admin import LookOnly


class Failing(admin.SimpleListFilter):
    title = "failing"
    parameter_name = "failing"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin):
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(failures__gt=0) if self.value() else queryset


class LeasedAdmin(LookOnly):
    """Work in the background: what failed, why, and when it is tried again."""

    list_filter = (Failing,)
    actions = ("try_again",)

    @admin.action(description="Try again at the next cycle", permissions=["view"])
    def try_again(self, request: HttpRequest, queryset: QuerySet) -> None:
        queryset.update(next_try_at=None)
        self.message_user(request, "They are tried again within a minute.")


@admin.register(Cursor)
class CursorAdmin(LeasedAdmin):
    list_display = (
        "session",
        "project",
        "summarised_through",
        "unsummarised_messages",
        "unsummarised_tokens",
        "failures",
        "next_try_at",
        "last_error",
        "lease_until",
    )
    list_select_related = ("session", "project")
    date_hierarchy = "session__last_activity_at"
    search_fields = ("session__title", "=session__id", "project__slug")
    ordering = ("-failures", "-pk")


@admin.register(Ladder)
class LadderAdmin(LeasedAdmin):
    list_display = ("project", "failures", "next_try_at", "last_error", "lease_until")
    list_select_related = ("project",)
    search_fields = ("project__slug", "project__name")
    ordering = ("-failures", "-pk")


class RevisionInline(admin.TabularInline):
    model = EntryRevision
    fields = ("revision", "summary", "written_by", "written_at")
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj=None) -> bool:
        return False


@admin.register(Entry)
class EntryAdmin(LookOnly):
    """Texts are edited in the app, which keeps the earlier ones and rewrites the digests above."""

    list_display = (
        "__str__",
        "excerpt",
        "project",
        "state",
        "pinned",
        "tokens",
        "message_count",
        "revision",
        "written_by",
        "last_source_at",
    )
    list_filter = ("granularity", "state", "pinned")
    list_select_related = ("project",)
    date_hierarchy = "last_source_at"
    ordering = ("-id",)
    search_fields = ("summary", "=period_key", "=session__id", "project__slug")
    exclude = ("sources_hash",)
    inlines = (RevisionInline,)

    @admin.display(description="summary")
    def excerpt(self, entry: Entry) -> str:
        return Truncator(entry.summary).chars(60)


@admin.register(EntryRevision)
class EntryRevisionAdmin(LookOnly):
    list_display = ("entry", "revision", "excerpt", "project", "written_by", "written_at")
    list_select_related = ("entry", "project")
    date_hierarchy = "written_at"
    ordering = ("-id",)
    search_fields = ("summary", "=entry__id", "project__slug")

    @admin.display(description="summary")
    def excerpt(self, revision: EntryRevision) -> str:
        return Truncator(revision.summary).chars(60)
