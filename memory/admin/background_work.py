"""Admin pages of background work: progress, failures and model calls."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from memory.admin.mixins import ActionAdmin
from memory.models import Call, Cursor, EntriesChanged, IndexCursor, Ladder, Nudge
from memory.views.charts.costs import grouped
from memory.views.charts.usage import SUM_DAYS, latest, model_calls, usage_charts
from projects.admin import ReadOnlyAdmin


class FailingFilter(admin.SimpleListFilter):
    title = _("failing")
    parameter_name = "failing"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin):
        return [("yes", _("Yes"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(failures__gt=0) if self.value() else queryset


class LeasedAdmin(ActionAdmin):
    """Base class of admin pages for work that is claimed by a lease and retried after a failure."""

    list_filter = (FailingFilter,)
    ordering = ("-failures", "-pk")
    actions = ("try_again",)

    @admin.action(description=_("Try again now"), permissions=["act"])
    def try_again(self, request: HttpRequest, queryset: QuerySet) -> None:
        queryset.update(next_try_at=None)
        self.message_user(request, _("They will be tried again within a minute."))


@admin.register(Cursor)
class CursorAdmin(LeasedAdmin):
    list_display = (
        "session",
        "project",
        "summarised_through",
        "unsummarised_messages",
        "unsummarised_tokens",
        "failures",
        "next_try_at",
        "last_error",
        "lease_until",
    )
    date_hierarchy = "session__last_activity_at"
    search_fields = ("=session__id", "project__slug")


@admin.register(Ladder)
class LadderAdmin(LeasedAdmin):
    list_display = ("project", "failures", "next_try_at", "last_error", "lease_until")
    search_fields = ("project__slug", "project__name")


@admin.register(Nudge, EntriesChanged)
class NudgeAdmin(ReadOnlyAdmin):
    list_display = ("id", "project")
    search_fields = ("project__slug",)


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin):
    """All model calls, and sums of them."""

    change_list_template = "admin/memory/call/change_list.html"
    list_display = (
        "kind",
        "model",
        "project",
        "user",
        "started_at",
        "duration_ms",
        "input_tokens",
        "cached_tokens",
        "output_tokens",
        "cost",
        "outcome",
    )
    list_filter = ("kind", "model")
    date_hierarchy = "started_at"
    search_fields = ("model", "project__slug", "user__username", "=session_id", "=message_id")
    list_select_related = ("project", "user")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            "tables": grouped(latest(Call.objects.all(), SUM_DAYS), ("user", "model", "day")),
            "charts": usage_charts(model_calls()),
            "sum_days": SUM_DAYS,
        }
        return super().changelist_view(request, context | (extra_context or {}))


@admin.register(IndexCursor)
class IndexCursorAdmin(LeasedAdmin):
    list_display = (
        "session",
        "project",
        "indexed_through",
        "wanted",
        "done",
        "failures",
        "next_try_at",
        "last_error",
        "lease_until",
    )
    search_fields = ("=session__id", "project__slug")
