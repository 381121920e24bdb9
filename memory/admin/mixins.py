"""Base classes for admin pages with actions, and for forms that save through a service."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.forgetting import service
from memory.forgetting.service import ForgetScope
from memory.views.forms.forgetting import ForgetReasonForm
from projects.admin import ReadOnlyAdmin
from projects.core.errors import DomainError

# Each row is changed in a transaction of its own, within one request.
MAX_ROWS_AT_ONCE = 200


def in_english(text: object) -> str:
    """Return `text` in English, the language of the admin's own log."""
    with translation.override("en"):
        return str(text)


def row_action(
    name: str, label: Any, change: Callable[[Any, Any], object], *, confirm: Any = ""
) -> Callable:
    """Return `change(row, user)` as an admin action.

    Each row is changed separately, and errors are reported for each row. `confirm` is the text of a
    confirmation page; without it, there is no such page.
    """

    def run(
        model_admin: "ActionAdmin", request: HttpRequest, queryset: QuerySet
    ) -> HttpResponse | None:
        rows = model_admin.selected_rows(request, queryset)
        if rows is None:
            return None
        if confirm and "confirmed" not in request.POST:
            return model_admin.confirmation_page(request, name, label, rows, explanation=confirm)
        changed = 0
        for row in rows:
            try:
                change(row, request.user)
            except DomainError as error:
                model_admin.message_user(request, f"{row}: {error}", messages.ERROR)
            else:
                changed += 1
                model_admin.log_change(request, row, in_english(label))
        model_admin.message_user(request, f"{label}: {changed}.")
        return None

    run.__name__ = name
    permission = "forget" if confirm else "act"
    return admin.action(run, description=label, permissions=[permission])


class ActionAdmin(ReadOnlyAdmin):
    """Read-only pages whose actions need the model's change or delete permission."""

    change_form_template = "admin/memory/change_form.html"
    confirm_template = "admin/memory/confirm.html"

    def has_act_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request)

    def has_forget_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run actions that cannot be undone."""
        return admin.ModelAdmin.has_delete_permission(self, request)

    def selected_rows(self, request: HttpRequest, queryset: QuerySet) -> list[Any] | None:
        """Return the rows of an action, or None, with a message, if too many are selected."""
        rows = list(queryset.select_related("project").order_by("pk")[: MAX_ROWS_AT_ONCE + 1])
        if len(rows) <= MAX_ROWS_AT_ONCE:
            return rows
        text = gettext("Select at most %(most)s rows.") % {"most": MAX_ROWS_AT_ONCE}
        self.message_user(request, text, messages.ERROR)
        return None

    def row_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        acts = {"acts": self.get_action_choices(request, []), "picked": ACTION_CHECKBOX_NAME}
        return super().row_context(request, row) | acts

    def confirmation_page(
        self, request: HttpRequest, action: str, title: Any, rows: list[Any], **context: Any
    ) -> HttpResponse:
        """Return a page that asks to confirm `action` on `rows`.

        `context` may have an explanation and a form.
        """
        context |= self.admin_site.each_context(request) | {
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "action": action,
            "rows": rows,
            "picked": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, self.confirm_template, context)


class ServiceForm(forms.ModelForm):
    """A form of the admin that saves through a service, with the errors beside its fields.

    `by` is the requesting user. `clean` saves, because the admin cannot show errors of
    `save_model`.
    """

    by: Any

    def apply(self) -> None:
        """Save the cleaned data. Raises DomainError."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                self.apply()
            except DomainError as error:
                self.add_error(error.field if error.field in self.fields else None, str(error))
        return data


class ServiceFormAdmin(ActionAdmin):
    """Pages on which users with the change permission edit a row with a `ServiceForm`."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.by = request.user
        return form

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Do nothing: `ServiceForm.clean` has already saved."""


class ForgetActionAdmin(ActionAdmin):
    """Adds the action Forget, with a confirmation page."""

    forget_explanation: Any = ""

    def forget_scope(self, row: Any) -> ForgetScope:
        raise NotImplementedError

    def forget_context(self, rows: list[Any]) -> Mapping[str, Any]:
        return {"explanation": self.forget_explanation}

    @admin.action(description=_("Forget"), permissions=["forget"])
    def forget(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        rows = self.selected_rows(request, queryset)
        if rows is None:
            return None
        form = ForgetReasonForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            context = {"form": form, **self.forget_context(rows)}
            return self.confirmation_page(
                request, "forget", _("Forget permanently"), rows, **context
            )
        for row in rows:
            self.log_deletions(request, self.model.objects.filter(pk=row.pk))
            reason = form.cleaned_data["reason"]
            service.forget(row.project, self.forget_scope(row), request.user, reason)
        self.message_user(request, gettext("Forgotten: %(n)s.") % {"n": len(rows)})
        return None
