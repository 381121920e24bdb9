"""What is kept, and how far memory has come, in the admin."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.contrib.auth import get_permission_codename
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator

from memory.layers import review
from memory.models import (
    Chunk,
    Corpus,
    Cursor,
    Entry,
    EntryRevision,
    IndexCursor,
    Ladder,
    State,
    Vector,
)
from projects.admin import LookOnly


class Failing(admin.SimpleListFilter):
    title = "failing"
    parameter_name = "failing"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin):
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(failures__gt=0) if self.value() else queryset


class Acting(LookOnly):
    """To be looked at by staff, and acted on by those who may change the model."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        codename = get_permission_codename("change", self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")


class LeasedAdmin(Acting):
    """Work in the background: what failed, why, and when it is tried again."""

    list_filter = (Failing,)
    actions = ("try_again",)

    @admin.action(description="Try again at the next cycle", permissions=["act"])
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
class EntryAdmin(Acting):
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
    actions = ("approve", "hide", "pin", "unpin")

    @admin.action(description="Approve what waits for review", permissions=["act"])
    def approve(self, request: HttpRequest, queryset: QuerySet) -> None:
        waiting = queryset.filter(state=State.PROPOSED)
        self._each(request, waiting, lambda entry: review.set_hidden(entry, False), "Approved")

    @admin.action(description="Hide", permissions=["act"])
    def hide(self, request: HttpRequest, queryset: QuerySet) -> None:
        shown = queryset.exclude(state=State.HIDDEN)
        self._each(request, shown, lambda entry: review.set_hidden(entry, True), "Hidden")

    @admin.action(description="Pin", permissions=["act"])
    def pin(self, request: HttpRequest, queryset: QuerySet) -> None:
        loose = queryset.filter(pinned=False)
        self._each(request, loose, lambda entry: review.pin(entry, True), "Pinned")

    @admin.action(description="Unpin", permissions=["act"])
    def unpin(self, request: HttpRequest, queryset: QuerySet) -> None:
        pinned = queryset.filter(pinned=True)
        self._each(request, pinned, lambda entry: review.pin(entry, False), "Unpinned")

    def _each(
        self,
        request: HttpRequest,
        entries: QuerySet[Entry],
        change: Callable[[Entry], Entry],
        done: str,
    ) -> None:
        """Changes each by itself, noted in the admin's log; tells which were refused, and why."""
        changed = 0
        for entry in entries:
            try:
                self.log_change(request, change(entry), done)
                changed += 1
            except review.Refused as refused:
                self.message_user(request, f"{entry}: {refused}", messages.ERROR)
        self.message_user(request, f"{done}: {changed}.")

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


@admin.register(IndexCursor)
class IndexCursorAdmin(LeasedAdmin):
    """What is behind or failed to be indexed, and why."""

    list_display = (
        "session",
        "project",
        "indexed_through",
        "wanted",
        "done",
        "failures",
        "next_try_at",
        "last_error",
        "lease_until",
    )
    list_select_related = ("session", "project")
    search_fields = ("session__title", "=session__id", "project__slug")
    ordering = ("-failures", "-pk")


@admin.register(Chunk)
class ChunkAdmin(LookOnly):
    list_display = ("source_id", "excerpt", "project", "speaker", "tokens", "occurred_at")
    list_filter = ("source_type", "role")
    list_select_related = ("project",)
    date_hierarchy = "occurred_at"
    ordering = ("-id",)
    search_fields = ("text", "=source", "project__slug")
    exclude = ("terms", "pieces")

    @admin.display(description="text")
    def excerpt(self, chunk: Chunk) -> str:
        return Truncator(chunk.text).chars(60)


@admin.register(Vector)
class VectorAdmin(LookOnly):
    list_display = ("chunk", "embedder", "project")
    list_select_related = ("chunk", "project")
    ordering = ("-id",)
    search_fields = ("=chunk__id", "=chunk__source", "project__slug", "embedder")
    exclude = ("embedding",)


@admin.register(Corpus)
class CorpusAdmin(LookOnly):
    list_display = ("project", "chunks", "changes", "counted_at")
    list_select_related = ("project",)
    search_fields = ("project__slug", "project__name")
    ordering = ("-chunks",)
    exclude = ("terms", "counts")
