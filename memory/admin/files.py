"""Admin pages of files: administrators can start reading a file again, and forget files."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chat.admin.private_text import PrivateTextAdmin
from memory.admin.mixins import ForgetActionAdmin, row_action
from memory.files import adding
from memory.forgetting.service import ForgetScope
from memory.models import File, FilePassage, FileRevision
from projects.admin import ReadOnlyAdmin


def read_again(document: File, by: Any) -> None:
    adding.retry(document)


@admin.register(File)
class FileAdmin(PrivateTextAdmin, ForgetActionAdmin):
    """The list does not show the names of files of private chats."""

    list_display = ("name_preview", "project", "session", "added_by", "uses", "changed_at")
    list_filter = (("session", admin.EmptyFieldListFilter),)
    list_select_related = ("project", "session", "added_by")
    date_hierarchy = "changed_at"
    search_fields = ("name", "=id", "=session__id", "project__slug", "added_by__username")
    actions = (row_action("read_again", _("Read again"), read_again), "forget")
    forget_explanation = _(
        "The files are removed from all prompts, searches and pages at once, in all versions. This "
        "cannot be undone."
    )

    @admin.display(description=_("name"))
    def name_preview(self, document: File) -> str:
        return self.preview(document, document.name)

    def forget_scope(self, row: File) -> ForgetScope:
        return ForgetScope(file=row.pk)


@admin.register(FileRevision)
class FileRevisionAdmin(PrivateTextAdmin, ReadOnlyAdmin):
    session_path = "document__session"
    list_display = (
        *("document", "number", "project", "media_type", "size", "page_count", "state"),
        *("passage_count", "indexed_passages", "failures", "created_at"),
    )
    list_filter = ("state", "media_type")
    list_select_related = ("document", "project")
    date_hierarchy = "created_at"
    search_fields = ("=document__id", "=id", "sha256", "project__slug")
    exclude = ("file",)


@admin.register(FilePassage)
class FilePassageAdmin(PrivateTextAdmin, ReadOnlyAdmin):
    session_path = "revision__document__session"
    list_display = ("text_preview", "revision", "number", "page", "project")
    list_select_related = ("revision__document__session", "project")
    search_fields = ("=revision__id", "=id", "project__slug")

    @admin.display(description=_("text"))
    def text_preview(self, passage: FilePassage) -> str:
        return self.preview(passage, passage.text)
