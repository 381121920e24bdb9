"""Admin pages of facts, on which moderators reword, decide on and forget facts."""

from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from chat.admin.private_text import HIDDEN_TEXT
from chat.models import Session, Visibility
from chat.signals import private_text_opened
from memory import facts
from memory.admin.mixins import ForgetActionAdmin, ServiceForm, ServiceFormAdmin, row_action
from memory.facts import Statement
from memory.forgetting.service import ForgetScope
from memory.models import ActivityVerb, Fact, FactSource
from memory.models.activity import record_activity
from projects.admin import ReadOnlyAdmin, ReadOnlyMixin
from projects.core.text import parse_uuid

PRIVATE_SOURCES = FactSource.objects.filter(session__visibility=Visibility.PRIVATE)


class FactSourceInline(ReadOnlyMixin, admin.StackedInline):
    """The sources of a fact, without text. A message's text is only on its own page."""

    model = FactSource
    fields = ("message", "session", "entry", "valid_from", "confidence", "found_at")


class StatementForm(ServiceForm):
    class Meta:
        model = Fact
        fields = ("subject", "predicate", "object", "valid_from", "valid_until", "version")
        widgets: ClassVar[dict[str, Any]] = {"version": forms.HiddenInput}

    def apply(self) -> None:
        words = {name: self.cleaned_data[name] for name in self.changed_data if name != "version"}
        statement = replace(Statement.of(self.instance), **words)
        facts.edit(self.instance, statement, self.by, self.cleaned_data["version"])


@admin.register(Fact)
class FactAdmin(ServiceFormAdmin, ForgetActionAdmin):
    """Reword, approve, hide and forget facts. Earlier versions are kept, and each change is
    recorded.

    The list does not show facts about one person, or from a private chat.
    """

    list_display = (
        "statement",
        "project",
        "state",
        "waits_because",
        "valid_from",
        "until",
        "confidence",
        "written_by",
        "recorded_at",
    )
    list_filter = (
        "state",
        "waits_because",
        "by_hand",
        ("user", admin.EmptyFieldListFilter),
        ("retired_at", admin.EmptyFieldListFilter),
    )
    date_hierarchy = "valid_from"
    search_fields = ("subject", "predicate", "object", "=id", "project__slug")
    form = StatementForm
    fields = (
        "project",
        "user",
        *StatementForm.Meta.fields,
        "confidence",
        "state",
        "waits_because",
        "by_hand",
        "written_by",
        "recorded_at",
        "retired_at",
        "earlier_of",
    )
    readonly_fields = tuple(name for name in fields if name not in StatementForm.Meta.fields)
    inlines = (FactSourceInline,)
    actions = (
        row_action("approve", _("Approve"), facts.approve),
        row_action("hide", _("Hide"), facts.hide),
        row_action("show", _("Show again"), facts.unhide),
        "forget",
    )
    forget_explanation = _(
        "The facts are removed from all prompts, searches and pages at once. This cannot be "
        "undone. The messages that mention them are kept."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fact]:
        rows = super().get_queryset(request)
        known = Fact.objects.with_validity().filter(pk=OuterRef("pk"))
        ends = known.values("until")[:1]  # type: ignore[misc]
        # Sources belong to the current version of a fact.
        current = Coalesce(OuterRef("earlier_of"), OuterRef("pk"))
        private = PRIVATE_SOURCES.filter(fact=current)
        return rows.annotate(ends=ends, is_private=Exists(private))

    @admin.display(description=_("fact"))
    def statement(self, fact: Fact) -> str:
        is_hidden = fact.user_id is not None or fact.is_private  # type: ignore[attr-defined]
        return str(HIDDEN_TEXT) if is_hidden else Truncator(fact.text).chars(90)

    @admin.display(description=_("until"), ordering="ends")
    def until(self, fact: Fact) -> Any:
        return fact.ends  # type: ignore[attr-defined]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # A search must not reveal the text of hidden facts; they are found by id only.
        if search_term and not parse_uuid(search_term.strip()):
            queryset = queryset.filter(user=None, is_private=False)
        return super().get_search_results(request, queryset, search_term)

    def row_context(self, request: HttpRequest, row: Fact) -> dict[str, Any]:
        # The page shows private text, so each reading is recorded.
        current = row.earlier_of_id or row.pk
        by, private = request.user, PRIVATE_SOURCES.filter(fact=current).values("session")
        for session in Session.objects.filter(pk__in=private):
            private_text_opened.send(sender=Session, session=session, by=by)
        if row.user_id is not None:
            record_activity(row.project_id, ActivityVerb.READ, by=by, fact_id=row.pk, count=1)
        return super().row_context(request, row)

    def forget_scope(self, row: Fact) -> ForgetScope:
        return ForgetScope(fact=row.earlier_of_id or row.pk)


@admin.register(FactSource)
class FactSourceAdmin(ReadOnlyAdmin):
    ordering = ("-id",)
    list_display = ("fact", "message", "session", "project", "valid_from", "confidence", "found_at")
    list_select_related = ("fact", "message", "session", "project")
    date_hierarchy = "found_at"
    search_fields = ("=fact__id", "=message__id", "=session__id", "project__slug")
