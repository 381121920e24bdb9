"""Admin pages of pinned text, which moderators edit and delete."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from memory import blocks
from memory.admin.mixins import ServiceForm, ServiceFormAdmin
from memory.models import Block


class BlockContentForm(ServiceForm):
    class Meta:
        model = Block
        fields = ("content", "version")
        widgets: ClassVar[dict[str, Any]] = {"version": forms.HiddenInput}

    def apply(self) -> None:
        content, version = self.cleaned_data["content"], self.cleaned_data["version"]
        block = self.instance
        blocks.put(block.project, block.user, block.name, content, self.by, version)


@admin.register(Block)
class BlockAdmin(ServiceFormAdmin):
    """Edit and delete blocks. The content of a personal block is shown to its owner only."""

    list_display = ("name", "project", "user", "tokens", "version", "updated_at")
    list_filter = (("user", admin.EmptyFieldListFilter),)
    list_select_related = ("project", "user")
    date_hierarchy = "updated_at"
    search_fields = ("name", "project__slug", "user__username")
    ordering = ("-updated_at",)
    form = BlockContentForm
    fields = (
        "project",
        "user",
        "name",
        *BlockContentForm.Meta.fields,
        "position",
        "tokens",
        "written_by",
        "created_at",
        "updated_at",
    )
    readonly_fields = tuple(name for name in fields if name not in BlockContentForm.Meta.fields)

    def has_change_permission(self, request: HttpRequest, obj: Block | None = None) -> bool:
        is_allowed = super().has_change_permission(request, obj)
        return is_allowed and not is_other_users(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Block | None = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def get_fields(self, request: HttpRequest, obj: Block | None = None) -> Any:
        fields = super().get_fields(request, obj)
        return [name for name in fields if name != "content" or not is_other_users(request, obj)]

    def delete_model(self, request: HttpRequest, obj: Block) -> None:
        blocks.remove(obj, request.user)


def is_other_users(request: HttpRequest, block: Block | None) -> bool:
    return block is not None and block.user_id not in (None, request.user.pk)
