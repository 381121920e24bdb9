"""What recall finds, in the admin: excerpts, their vectors, and the words of each project."""

from django.contrib import admin

from chat.veil import Veiled
from memory.models import Chunk, Corpus, Vector
from projects.admin import LookOnly


@admin.register(Chunk)
class ChunkAdmin(Veiled, LookOnly):
    list_display = ("source_id", "excerpt", "project", "role", "tokens", "occurred_at")
    list_filter = ("source_type", "role")
    list_select_related = ("project", "session")
    date_hierarchy = "occurred_at"
    ordering = ("-id",)
    search_fields = ("text", "=id", "=source", "project__slug")
    exclude = ("terms", "pieces")

    @admin.display(description="text")
    def excerpt(self, chunk: Chunk) -> str:
        return self.told(chunk, chunk.text)


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
