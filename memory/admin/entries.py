"""Admin pages of entries and their earlier revisions."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Case, QuerySet, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.admin.private_text import PrivateTextAdmin
from memory.admin.entry_actions import EntryActionsMixin
from memory.admin.mixins import ActionAdmin
from memory.models import Entry, EntryRevision, EntryStatus
from memory.moderation.actions import ModerationAction, state_objection
from memory.moderation.revisions import comparison, entry_texts
from projects.admin import ReadOnlyAdmin, ReadOnlyMixin


class EntryRevisionInline(ReadOnlyMixin, admin.StackedInline):
    model = EntryRevision
    fields = ("revision", "summary", "written_by", "written_at")


def _action(act: ModerationAction) -> Callable:
    """Return `act` as an admin action."""

    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        return model_admin.moderate(request, queryset, act)

    run.__name__ = act.value
    is_final = act in (ModerationAction.FORGET, ModerationAction.REDACT)
    return admin.action(run, description=act.label, permissions=["forget" if is_final else "act"])


@admin.register(Entry)
class EntryAdmin(EntryActionsMixin, ActionAdmin):
    """Entries are changed by actions only.

    Each action keeps the previous revision, schedules a rewrite of the digests above the entry, and
    is recorded in the activity log.
    """

    list_display = (
        "__str__",
        "excerpt",
        "project",
        "state",
        "waits_because",
        "pinned",
        "tokens",
        "last_source_at",
    )
    show_facets = admin.ShowFacets.ALWAYS
    list_filter = ("state", "granularity", "waits_because", "pinned", "withheld")
    list_select_related = ("project", "session")
    date_hierarchy = "last_source_at"
    ordering = (Case(When(state=EntryStatus.PROPOSED, then=Value(0)), default=Value(1)), "-id")
    search_fields = ("summary", "=id", "=period_key", "=session__id", "project__slug")
    exclude = ("sources_hash",)
    inlines = (EntryRevisionInline,)
    actions = tuple(_action(act) for act in ModerationAction)
    change_form_template = "admin/memory/entry/change_form.html"

    @admin.display(description=_("summary"))
    def excerpt(self, entry: Entry) -> str:
        return self.preview(entry, entry.summary)

    def get_urls(self):
        view = self.admin_site.admin_view(self.compare_revisions)
        return [path("<uuid:pk>/texts/", view, name="memory_entry_texts"), *super().get_urls()]

    def compare_revisions(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """Show two revisions of an entry side by side."""
        entry = self.get_object(request, str(pk))
        if entry is None:
            raise Http404
        if not self.has_view_permission(request, entry):
            raise PermissionDenied
        self.record_access(request, entry)
        context = self.admin_site.each_context(request) | {
            "title": gettext("Versions of %(entry)s") % {"entry": entry},
            "opts": self.opts,
            "entry": entry,
            "media": self.media,
        }
        context |= comparison(entry_texts(entry), request.GET)
        return TemplateResponse(request, "admin/memory/entry/revisions.html", context)

    def row_context(self, request: HttpRequest, row: Entry) -> dict[str, Any]:
        acts = [act for act in self.acts_for(request) if not state_objection(act, row)]
        labels = [(act.value, f"{act.label}…") for act in acts]
        return super().row_context(request, row) | {"acts": labels}


@admin.register(EntryRevision)
class EntryRevisionAdmin(PrivateTextAdmin, ReadOnlyAdmin):
    session_path = "entry__session"
    ordering = ("-id",)
    list_display = ("entry", "revision", "excerpt", "project", "written_by", "written_at")
    list_select_related = ("entry__session", "project")
    date_hierarchy = "written_at"
    search_fields = ("summary", "=entry__id", "project__slug")

    @admin.display(description=_("summary"))
    def excerpt(self, revision: EntryRevision) -> str:
        return self.preview(revision, revision.summary)
