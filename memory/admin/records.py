"""Admin pages of records that cannot be changed: activity, tombstones, the index."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.admin.private_text import PrivateTextAdmin
from chat.attachments import file_removal
from memory.layers.pending import count_awaiting_rewrite
from memory.models import (
    Activity,
    ActivityVerb,
    Chunk,
    Corpus,
    EntryState,
    RenderedBank,
    SourceType,
    Tombstone,
    Vector,
)
from projects.admin import ReadOnlyAdmin
from projects.core.text import parse_uuid


@admin.register(Activity)
class ActivityAdmin(ReadOnlyAdmin):
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
    change_form_template = "admin/memory/activity/change_form.html"

    def row_context(self, request: HttpRequest, row: Activity) -> dict[str, Any]:
        context = super().row_context(request, row)
        if row.verb == ActivityVerb.FORGOTTEN:
            context["waiting"] = count_awaiting_rewrite(row)
            context["files"] = file_removal.count_pending_removals(row.project_id, row.pk)
        return context


@admin.register(Tombstone)
class TombstoneAdmin(ReadOnlyAdmin):
    list_display = ("kind", "subject", "project", "at")
    list_filter = ("kind",)
    date_hierarchy = "at"
    search_fields = ("=subject", "project__slug")


@admin.register(EntryState)
class EntryStateAdmin(ReadOnlyAdmin):
    list_display = ("entry", "project", "since", "state", "pinned", "withheld", "revision")
    list_filter = ("state",)
    date_hierarchy = "since"
    search_fields = ("=entry__id", "project__slug")


@admin.register(RenderedBank)
class RenderedBankAdmin(ReadOnlyAdmin):
    list_display = ("project", "version", "tokens")
    search_fields = ("project__slug", "project__name")
    # The text may come from private sessions. Only the pages of entries record who reads it.
    exclude = ("text",)


# The texts of these chunks may be private. The page of the summary or fact records who reads it.
DERIVED_SOURCES = (SourceType.ENTRY, SourceType.FACT)


@admin.register(Chunk)
class ChunkAdmin(PrivateTextAdmin, ReadOnlyAdmin):
    """The index, without the texts of summaries and facts."""

    list_display = ("__str__", "excerpt", "project", "role", "tokens", "occurred_at")
    list_filter = ("source_type", "role")
    list_select_related = ("project", "session")
    date_hierarchy = "occurred_at"
    search_fields = ("text", "=id", "=source", "project__slug")
    exclude = ("terms", "pieces")

    def get_fields(self, request: HttpRequest, obj: Chunk | None = None) -> Any:
        is_derived = obj is not None and obj.source_type in DERIVED_SOURCES
        fields = super().get_fields(request, obj)
        return [name for name in fields if name != "text" or not is_derived]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # As in the lists of summaries and facts, a search must not reveal hidden text.
        if search_term and not parse_uuid(search_term.strip()):
            queryset = queryset.exclude(source_type__in=DERIVED_SOURCES)
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description=_("text"))
    def excerpt(self, chunk: Chunk) -> str:
        if chunk.source_type in DERIVED_SOURCES:
            return gettext("(on the page of its source)")
        return self.preview(chunk, chunk.text)


@admin.register(Vector)
class VectorAdmin(ReadOnlyAdmin):
    list_display = ("chunk", "embedder", "project")
    search_fields = ("=chunk__id", "=chunk__source", "project__slug", "embedder")
    exclude = ("embedding",)


@admin.register(Corpus)
class CorpusAdmin(ReadOnlyAdmin):
    list_display = ("project", "chunks", "changes", "counted_at")
    search_fields = ("project__slug", "project__name")
    ordering = ("-chunks",)
    exclude = ("terms", "counts")
