"""Admin pages of facts, with actions to decide on facts and to forget them."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from chat.admin.private_text import HIDDEN_TEXT, is_uuid
from chat.models import Session, Visibility
from chat.signals import private_text_opened
from memory import facts
from memory.admin.mixins import ForgetActionAdmin, in_english
from memory.forgetting.service import ForgetScope
from memory.models import ActivityVerb, Fact, FactSource
from memory.models.activity import record_activity
from memory.moderation.actions import MAX_ENTRIES_AT_ONCE
from projects.admin import ReadOnlyAdmin, ReadOnlyMixin
from projects.core.errors import DomainError

PRIVATE_SOURCES = FactSource.objects.filter(session__visibility=Visibility.PRIVATE)


class FactSourceInline(ReadOnlyMixin, admin.StackedInline):
    """The sources; the text of a message is only on the message's own page."""

    model = FactSource
    fields = ("message", "session", "entry", "valid_from", "confidence", "found_at")


def _action(name: str, label: Any, change: Callable[[Fact, Any], Fact]) -> Callable:
    """Return `change` as an admin action. Each fact is changed by itself; refusals are reported."""

    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet[Fact]) -> None:
        changed = 0
        for fact in queryset.select_related("project").order_by("pk")[:MAX_ENTRIES_AT_ONCE]:
            try:
                change(fact, request.user)
            except DomainError as error:
                model_admin.message_user(request, f"{fact}: {error}", messages.ERROR)
            else:
                changed += 1
                model_admin.log_change(request, fact, in_english(label))
        model_admin.message_user(request, f"{label}: {changed}.")

    run.__name__ = name
    return admin.action(run, description=label, permissions=["act"])


@admin.register(Fact)
class FactAdmin(ForgetActionAdmin):
    """Facts are changed by actions only, which keep earlier versions and are recorded.

    The list does not show facts about one person, or from a private chat.
    """

    list_display = (
        "__str__",
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
    exclude = ("subject_key", "predicate_key", "topic")
    inlines = (FactSourceInline,)
    actions = (
        _action("approve", _("Approve"), facts.approve),
        _action("hide", _("Hide"), facts.hide),
        _action("show", _("Show again"), facts.unhide),
        "forget",
    )
    forget_template = "admin/memory/fact/forget.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fact]:
        rows = super().get_queryset(request)
        known = Fact.objects.with_validity().filter(pk=OuterRef("pk"))
        ends = known.values("until")[:1]  # type: ignore[misc]
        private = PRIVATE_SOURCES.filter(fact=OuterRef("pk"))
        return rows.annotate(ends=ends, is_private=Exists(private))

    @admin.display(description=_("fact"))
    def statement(self, fact: Fact) -> str:
        is_hidden = fact.user_id is not None or fact.is_private  # type: ignore[attr-defined]
        return HIDDEN_TEXT if is_hidden else Truncator(fact.text).chars(90)

    @admin.display(description=_("until"), ordering="ends")
    def until(self, fact: Fact) -> Any:
        return fact.ends  # type: ignore[attr-defined]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # A search must not reveal the text of hidden facts; they are found by id only.
        if search_term and not is_uuid(search_term):
            queryset = queryset.filter(user=None, is_private=False)
        return super().get_search_results(request, queryset, search_term)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        fact, by = kwargs.get("obj"), request.user
        if fact is not None:
            # The page shows private text, so each reading is recorded.
            private = PRIVATE_SOURCES.filter(fact=fact).values("session")
            for session in Session.objects.filter(pk__in=private):
                private_text_opened.send(sender=Session, session=session, by=by)
            if fact.user_id is not None:
                record_activity(fact.project_id, ActivityVerb.READ, by=by, fact_id=fact.pk, count=1)
        return super().render_change_form(request, context, *args, **kwargs)

    def forget_scope(self, row: Fact) -> ForgetScope:
        return ForgetScope(fact=row.earlier_of_id or row.pk)

    def forget_context(self, rows: list[Fact]) -> Mapping[str, Any]:
        return {"facts": rows}


@admin.register(FactSource)
class FactSourceAdmin(ReadOnlyAdmin):
    ordering = ("-id",)
    list_display = ("fact", "message", "session", "project", "valid_from", "confidence", "found_at")
    list_select_related = ("fact", "message", "session", "project")
    date_hierarchy = "found_at"
    search_fields = ("=fact__id", "=message__id", "=session__id", "project__slug")
