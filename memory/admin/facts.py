"""What is held to be so, in the admin: looked at, decided on and forgotten."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.models import Session, Visibility
from chat.signals import private_text_opened
from chat.veil import VEIL, is_id
from memory import facts, forgetting
from memory.admin.acting import Acting, in_english
from memory.facts import Refused
from memory.forgetting import Scope
from memory.models import Fact, FactSource, Reason, Verb
from memory.models.activity import note
from memory.moderation import MOST_AT_ONCE
from projects.admin import LookOnly

PRIVATE = FactSource.objects.filter(session__visibility=Visibility.PRIVATE)


class SourceInline(admin.StackedInline):
    """Where it was said; the words themselves are behind the message's own page."""

    model = FactSource
    fields = ("message", "session", "entry", "valid_from", "confidence", "found_at")
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj=None) -> bool:
        return False


def _action(name: str, label: Any, act: Callable[[Fact, Any], Fact]) -> Callable:
    """`act` as an action of the list: each fact by itself, what is refused said."""

    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet[Fact]) -> None:
        done = 0
        for fact in queryset.select_related("project").order_by("pk")[:MOST_AT_ONCE]:
            try:
                act(fact, request.user)
            except Refused as refused:
                model_admin.message_user(request, f"{fact}: {refused}", messages.ERROR)
            else:
                done += 1
                model_admin.log_change(request, fact, in_english(label))
        model_admin.message_user(request, f"{label}: {done}.")

    run.__name__ = name
    return admin.action(run, description=label, permissions=["act"])


@admin.register(Fact)
class FactAdmin(Acting):
    """Its fields are not changed by hand: what is done to it keeps the earlier versions, and is on
    the record. What is about one person, or was said in a private chat, is not told in the list.
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
    list_select_related = ("project",)
    date_hierarchy = "valid_from"
    ordering = ("-id",)
    search_fields = ("subject", "predicate", "object", "=id", "project__slug")
    exclude = ("subject_key", "predicate_key", "topic")
    inlines = (SourceInline,)
    actions = (
        _action("approve", _("Approve"), facts.approve),
        _action("hide", _("Hide"), facts.hide),
        _action("show", _("Show again"), facts.show),
        "forget",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fact]:
        rows = super().get_queryset(request)
        known = Fact.objects.known().filter(pk=OuterRef("pk"))
        ends = known.values("until")[:1]  # type: ignore[misc]
        private = PRIVATE.filter(fact=OuterRef("pk"))
        return rows.annotate(ends=ends, is_private=Exists(private))

    @admin.display(description=_("fact"))
    def statement(self, fact: Fact) -> str:
        veiled = fact.user_id is not None or fact.is_private  # type: ignore[attr-defined]
        return VEIL if veiled else Truncator(fact.text).chars(90)

    @admin.display(description=_("until"), ordering="ends")
    def until(self, fact: Fact) -> Any:
        return fact.ends  # type: ignore[attr-defined]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # What is not shown is not to be guessed by searching for it: by its id it is found.
        if search_term and not is_id(search_term):
            queryset = queryset.filter(user=None, is_private=False)
        return super().get_search_results(request, queryset, search_term)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        fact = kwargs.get("obj")
        if fact is not None:
            self._leave_trace(request, fact)
        return super().render_change_form(request, context, *args, **kwargs)

    def _leave_trace(self, request: HttpRequest, fact: Fact) -> None:
        """Puts on the record that whoever asks is shown private words."""
        sessions = Session.objects.filter(pk__in=PRIVATE.filter(fact=fact).values("session"))
        for session in sessions:
            private_text_opened.send(sender=Session, session=session, by=request.user)
        if fact.user_id is not None:
            note(fact.project_id, Verb.READ, by=request.user, fact_id=fact.pk, count=1)

    @admin.action(description=_("Forget"), permissions=["forget"])
    def forget(self, request: HttpRequest, queryset: QuerySet[Fact]) -> HttpResponse | None:
        found = list(queryset.select_related("project").order_by("pk")[:MOST_AT_ONCE])
        if "confirmed" not in request.POST:
            return self._ask(request, found)
        reason = request.POST.get("reason", "")
        why = reason if reason in Reason.values else Reason.OTHER
        for fact in found:
            self.log_deletions(request, Fact.objects.filter(pk=fact.pk))
            scope = Scope(fact=fact.earlier_of_id or fact.pk)
            forgetting.forget(fact.project, scope, request.user, why)
        self.message_user(request, gettext("Forgotten: %(n)s.") % {"n": len(found)})
        return None

    def _ask(self, request: HttpRequest, found: list[Fact]) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": _("Forget for good"),
            "opts": self.opts,
            "media": self.media,
            "facts": found,
            "reasons": Reason.choices,
            "picked": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/memory/fact/forget.html", context)


@admin.register(FactSource)
class FactSourceAdmin(LookOnly):
    list_display = ("fact", "message", "session", "project", "valid_from", "confidence", "found_at")
    list_select_related = ("fact", "message", "session", "project")
    date_hierarchy = "found_at"
    search_fields = ("=fact__id", "=message__id", "=session__id", "project__slug")
    ordering = ("-id",)
