"""Imports in the admin, where memory can take back what one of them brought."""

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.admin import ImportAdmin
from chat.imports import reach_of
from chat.models import Import, ImportedStretch
from memory import forgetting
from memory.admin.acting import Acting
from memory.forgetting import Scope
from memory.models import Reason
from memory.moderation import MOST_AT_ONCE
from projects.admin import LookOnly

admin.site.unregister(Import)


@admin.register(Import)
class RevocableImportAdmin(ImportAdmin, Acting):
    actions = ("forget",)

    @admin.action(description=_("Forget"), permissions=["forget"])
    def forget(self, request: HttpRequest, queryset: QuerySet[Import]) -> HttpResponse | None:
        found = list(queryset.select_related("project", "user").order_by("pk")[:MOST_AT_ONCE])
        if "confirmed" not in request.POST:
            return self._ask(request, found)
        reason = request.POST.get("reason", "")
        why = reason if reason in Reason.values else Reason.OTHER
        for upload in found:
            self.log_deletions(request, Import.objects.filter(pk=upload.pk))
            forgetting.forget(upload.project, Scope(upload=upload.pk), request.user, why)
        self.message_user(request, gettext("Forgotten: %(n)s.") % {"n": len(found)})
        return None

    def _ask(self, request: HttpRequest, found: list[Import]) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": _("Forget for good"),
            "opts": self.opts,
            "media": self.media,
            "imports": [(upload, reach_of(upload)) for upload in found],
            "reasons": Reason.choices,
            "picked": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/memory/import/forget.html", context)


@admin.register(ImportedStretch)
class ImportedStretchAdmin(LookOnly):
    list_display = ("upload", "project", "session", "first_seq", "last_seq")
    list_select_related = ("upload", "project", "session")
    ordering = ("-id",)
    search_fields = ("=upload__id", "=session__id", "project__slug")
    raw_id_fields = ("project", "upload", "session")
