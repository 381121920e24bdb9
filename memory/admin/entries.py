"""What is kept: its texts, and what moderators do to them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Case, Count, QuerySet, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.veil import Veiled
from memory.admin.acting import Acting
from memory.admin.moderating import Moderating
from memory.comparing import compared, texts_of
from memory.models import Entry, EntryRevision, State
from memory.moderation import Act, state_against
from projects.admin import LookOnly


class StateFilter(admin.SimpleListFilter):
    """By state, each with how many there are; what waits for review first."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin):
        rows = Entry.objects.order_by().values_list("state").annotate(Count("pk"))
        counts = dict(rows)
        return [(value, f"{label} ({counts.get(value, 0)})") for value, label in State.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(state=self.value()) if self.value() else queryset


class RevisionInline(admin.StackedInline):
    model = EntryRevision
    fields = ("revision", "summary", "written_by", "written_at")
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj=None) -> bool:
        return False


def _action(act: Act) -> Callable:
    """`act` as an action of the list."""

    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        return model_admin.moderate(request, queryset, act)

    run.__name__ = act.value
    for_good = act in (Act.FORGET, Act.REDACT)
    return admin.action(run, description=act.label, permissions=["forget" if for_good else "act"])


@admin.register(Entry)
class EntryAdmin(Moderating, Acting):
    """Its fields are not changed by hand: what is done to it keeps the earlier texts, has the
    digests above written anew, and is on the record.
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
    list_filter = (StateFilter, "granularity", "waits_because", "pinned", "withheld")
    list_select_related = ("project", "session")
    date_hierarchy = "last_source_at"
    ordering = (Case(When(state=State.PROPOSED, then=Value(0)), default=Value(1)), "-id")
    search_fields = ("summary", "=id", "=period_key", "=session__id", "project__slug")
    exclude = ("sources_hash",)
    inlines = (RevisionInline,)
    actions = tuple(_action(act) for act in Act)
    change_form_template = "admin/memory/entry/change_form.html"

    @admin.display(description=_("summary"))
    def excerpt(self, entry: Entry) -> str:
        return self.told(entry, entry.summary)

    def get_urls(self):
        texts = self.admin_site.admin_view(self.texts)
        return [path("<uuid:pk>/texts/", texts, name="memory_entry_texts"), *super().get_urls()]

    def texts(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """Two of the texts of an entry, side by side."""
        entry = self.get_object(request, str(pk))
        if entry is None:
            raise Http404
        if not self.has_view_permission(request, entry):
            raise PermissionDenied
        self.leave_trace(request, entry)
        context = self.admin_site.each_context(request) | {
            "title": gettext("The texts of %(entry)s") % {"entry": entry},
            "opts": self.opts,
            "entry": entry,
            "media": self.media,
        }
        template = "admin/memory/entry/texts.html"
        return TemplateResponse(request, template, context | compared(texts_of(entry), request.GET))

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        entry = kwargs.get("obj")
        if entry is not None:
            acts = self.acts_for(request)
            context["acts"] = [act for act in acts if not state_against(act, entry)]
            context["picked"] = ACTION_CHECKBOX_NAME
        return super().render_change_form(request, context, *args, **kwargs)


@admin.register(EntryRevision)
class EntryRevisionAdmin(Veiled, LookOnly):
    of_session = "entry__session"
    list_display = ("entry", "revision", "excerpt", "project", "written_by", "written_at")
    list_select_related = ("entry__session", "project")
    date_hierarchy = "written_at"
    ordering = ("-id",)
    search_fields = ("summary", "=entry__id", "project__slug")

    @admin.display(description=_("summary"))
    def excerpt(self, revision: EntryRevision) -> str:
        return self.told(revision, revision.summary)
