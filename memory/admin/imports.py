"""Admin pages of imports. Memory adds an action that forgets the content of an import."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin

from chat.admin import ImportAdmin
from chat.importers.jobs import revocation_scope
from chat.models import Import, ImportedStretch
from memory.admin.mixins import ForgetActionAdmin
from memory.forgetting.service import ForgetScope
from projects.admin import ReadOnlyAdmin

admin.site.unregister(Import)


@admin.register(Import)
class RevocableImportAdmin(ImportAdmin, ForgetActionAdmin):
    actions = ("forget",)
    confirm_template = "admin/memory/import/forget.html"

    def forget_scope(self, row: Import) -> ForgetScope:
        return ForgetScope(upload=row.pk)

    def forget_context(self, rows: list[Import]) -> Mapping[str, Any]:
        return {"imports": [(upload, revocation_scope(upload)) for upload in rows]}


@admin.register(ImportedStretch)
class ImportedStretchAdmin(ReadOnlyAdmin):
    list_display = ("upload", "project", "session", "first_seq", "last_seq")
    list_select_related = ("upload", "project", "session")
    search_fields = ("=upload__id", "=session__id", "project__slug")
