"""Admin actions on entries. Each shows a preview before it is applied."""

from collections import defaultdict
from collections.abc import Sequence

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from chat.admin.private_text import PrivateTextAdmin
from memory.admin.mixins import in_english
from memory.models import ActivityVerb, Entry
from memory.moderation.actions import (
    DONE_LABELS,
    MAX_ENTRIES_AT_ONCE,
    TEXT_ACTIONS,
    ModerationAction,
    ModerationOutcome,
    ModerationRequest,
    apply_action,
    selection_objection,
)
from memory.moderation.preview import ModerationPreview, preview
from memory.permissions import is_private
from memory.views.forms.entries import EntryActionForm
from projects.models import Project


def _no_objection(entry: Entry, act: ModerationAction) -> str:
    """Allow every action: staff have the permissions of the admin, in every project."""
    return ""


class EntryActionsMixin(PrivateTextAdmin):
    """Adds a confirmation page between the choice of an action and the action."""

    def acts_for(self, request: HttpRequest) -> list[ModerationAction]:
        """Return the actions that the user may choose."""
        names = self.get_actions(request)
        return [act for act in ModerationAction if act.value in names]

    def moderate(
        self, request: HttpRequest, queryset: QuerySet[Entry], act: ModerationAction
    ) -> HttpResponse | None:
        """Show the preview of the action. Apply the action once the user has confirmed it."""
        entries = list(queryset.select_related("session", "project")[: MAX_ENTRIES_AT_ONCE + 1])
        if error := selection_objection(act, len(entries)):
            self.message_user(request, error, messages.ERROR)
            return None
        entries.sort(key=lambda entry: (entry.last_source_at, entry.pk))
        form = EntryActionForm.for_preview(act, request.POST, entries[0])
        if "confirmed" not in request.POST or not form.is_valid():
            return self._confirmation_page(request, entries, form)
        outcome = apply_action(form.wish(request.user), entries, _no_objection)
        if act in TEXT_ACTIONS and outcome.refused:
            form.add_error("text", outcome.refused[0][1])
            return self._confirmation_page(request, entries, form)
        return self._report(request, act, outcome)

    def _confirmation_page(
        self, request: HttpRequest, entries: list[Entry], form: EntryActionForm
    ) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": str(form.act.label),
            "opts": self.opts,
            "media": self.media,
            "act": form.act,
            "form": form,
            "entries": entries,
            "picked": ACTION_CHECKBOX_NAME,
        }
        if form.act in TEXT_ACTIONS:
            self.record_access(request, entries[0])
        context |= form.preview_context(request.user, entries, lambda wish: _impacts(wish, entries))
        context["any_done"] = any(impact.outcome.done for _, impact in context["impacts"])
        return TemplateResponse(request, "admin/memory/entry/action.html", context)

    def _report(
        self, request: HttpRequest, act: ModerationAction, outcome: ModerationOutcome
    ) -> HttpResponse | None:
        """Log the changes, and redirect to the receipts of forgotten entries."""
        for entry in outcome.done:
            self.log_change(request, entry, in_english(DONE_LABELS[act]))
        for entry, reason in outcome.refused:
            self.message_user(request, f"{entry}: {reason}", messages.ERROR)
        self.message_user(request, f"{DONE_LABELS[act]}: {len(outcome.done)}.")
        if not outcome.receipts or not request.user.has_perm("memory.view_activity"):
            return None
        if len(outcome.receipts) == 1:
            return redirect("admin:memory_activity_change", outcome.receipts[0].id)
        activity = reverse("admin:memory_activity_changelist")
        return redirect(f"{activity}?verb__exact={ActivityVerb.FORGOTTEN}")


def _impacts(
    wish: ModerationRequest, entries: Sequence[Entry]
) -> list[tuple[Project, ModerationPreview]]:
    """Return the preview for each project, without texts of private sessions."""
    by_project: dict[Project, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_project[entry.project].append(entry)
    return [
        (project, preview(project, wish, rows, _no_objection, is_private))
        for project, rows in by_project.items()
    ]
