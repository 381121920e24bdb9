"""Blocks in the admin: to be read, and deleted on the record."""

from django.contrib import admin
from django.http import HttpRequest

from memory import blocks
from memory.models import Block
from projects.admin import LookOnly


@admin.register(Block)
class BlockAdmin(LookOnly):
    """A user's own are shown by their names alone: nobody else is to read them."""

    list_display = ("name", "project", "user", "tokens", "version", "updated_at")
    list_filter = (("user", admin.EmptyFieldListFilter),)
    list_select_related = ("project", "user")
    date_hierarchy = "updated_at"
    search_fields = ("name", "project__slug", "user__username")
    ordering = ("-updated_at",)

    def has_delete_permission(self, request: HttpRequest, obj: Block | None = None) -> bool:
        user = request.user
        return user.is_active and user.has_perm("memory.delete_block")

    def get_exclude(self, request: HttpRequest, obj: Block | None = None) -> tuple[str, ...]:
        is_anothers = obj is not None and obj.user_id not in (None, request.user.pk)
        return ("content",) if is_anothers else ()

    def delete_model(self, request: HttpRequest, obj: Block) -> None:
        blocks.remove(obj, request.user)

    def delete_queryset(self, request: HttpRequest, queryset) -> None:
        for block in queryset:
            blocks.remove(block, request.user)
