"""Base classes for admin pages with actions."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.forgetting import service
from memory.forgetting.service import ForgetScope
from memory.models import ModerationReason
from memory.moderation.actions import MAX_ENTRIES_AT_ONCE
from projects.admin import ReadOnlyAdmin


def in_english(text: object) -> str:
    """Return `text` in English, the language of the admin's own log."""
    with translation.override("en"):
        return str(text)


class ActionAdmin(ReadOnlyAdmin):
    """Read-only pages whose actions need the model's change or delete permission."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request)

    def has_forget_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run actions that cannot be undone."""
        return admin.ModelAdmin.has_delete_permission(self, request)


class ForgetActionAdmin(ActionAdmin):
    """Adds the action Forget, with a confirmation page."""

    forget_template: str

    def forget_scope(self, row: Any) -> ForgetScope:
        raise NotImplementedError

    def forget_context(self, rows: list[Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    @admin.action(description=_("Forget"), permissions=["forget"])
    def forget(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        rows = list(queryset.select_related("project").order_by("pk")[:MAX_ENTRIES_AT_ONCE])
        if "confirmed" not in request.POST:
            context = self.admin_site.each_context(request) | {
                "title": _("Forget permanently"),
                "opts": self.opts,
                "media": self.media,
                "reasons": ModerationReason.choices,
                "picked": ACTION_CHECKBOX_NAME,
            }
            context |= self.forget_context(rows)
            return TemplateResponse(request, self.forget_template, context)
        reason = request.POST.get("reason", "")
        if reason not in ModerationReason.values:
            reason = ModerationReason.OTHER
        for row in rows:
            self.log_deletions(request, self.model.objects.filter(pk=row.pk))
            service.forget(row.project, self.forget_scope(row), request.user, reason)
        self.message_user(request, gettext("Forgotten: %(n)s.") % {"n": len(rows)})
        return None
