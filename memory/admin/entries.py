"""What is kept: its texts, and what moderators do to them."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator

from memory.admin.acting import Acting
from memory.layers import review
from memory.models import Entry, EntryRevision, State
from projects.admin import LookOnly


class RevisionInline(admin.TabularInline):
    model = EntryRevision
    fields = ("revision", "summary", "written_by", "written_at")
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj=None) -> bool:
        return False


@admin.register(Entry)
class EntryAdmin(Acting):
    """Texts are edited in the app, which keeps the earlier ones and rewrites the digests above."""

    list_display = (
        "__str__",
        "excerpt",
        "project",
        "state",
        "pinned",
        "tokens",
        "message_count",
        "revision",
        "written_by",
        "last_source_at",
    )
    list_filter = ("granularity", "state", "pinned")
    list_select_related = ("project",)
    date_hierarchy = "last_source_at"
    ordering = ("-id",)
    search_fields = ("summary", "=period_key", "=session__id", "project__slug")
    exclude = ("sources_hash",)
    inlines = (RevisionInline,)
    actions = ("approve", "hide", "pin", "unpin")

    @admin.action(description="Approve what waits for review", permissions=["act"])
    def approve(self, request: HttpRequest, queryset: QuerySet) -> None:
        waiting = queryset.filter(state=State.PROPOSED)
        self._each(request, waiting, lambda entry: review.set_hidden(entry, False), "Approved")

    @admin.action(description="Hide", permissions=["act"])
    def hide(self, request: HttpRequest, queryset: QuerySet) -> None:
        shown = queryset.exclude(state=State.HIDDEN)
        self._each(request, shown, lambda entry: review.set_hidden(entry, True), "Hidden")

    @admin.action(description="Pin", permissions=["act"])
    def pin(self, request: HttpRequest, queryset: QuerySet) -> None:
        loose = queryset.filter(pinned=False)
        self._each(request, loose, lambda entry: review.pin(entry, True), "Pinned")

    @admin.action(description="Unpin", permissions=["act"])
    def unpin(self, request: HttpRequest, queryset: QuerySet) -> None:
        pinned = queryset.filter(pinned=True)
        self._each(request, pinned, lambda entry: review.pin(entry, False), "Unpinned")

    def _each(
        self,
        request: HttpRequest,
        entries: QuerySet[Entry],
        change: Callable[[Entry], Entry],
        done: str,
    ) -> None:
        """Changes each by itself, noted in the admin's log; tells which were refused, and why."""
        changed = 0
        for entry in entries:
            try:
                self.log_change(request, change(entry), done)
                changed += 1
            except review.Refused as refused:
                self.message_user(request, f"{entry}: {refused}", messages.ERROR)
        self.message_user(request, f"{done}: {changed}.")

    @admin.display(description="summary")
    def excerpt(self, entry: Entry) -> str:
        return Truncator(entry.summary).chars(60)


@admin.register(EntryRevision)
class EntryRevisionAdmin(LookOnly):
    list_display = ("entry", "revision", "excerpt", "project", "written_by", "written_at")
    list_select_related = ("entry", "project")
    date_hierarchy = "written_at"
    ordering = ("-id",)
    search_fields = ("summary", "=entry__id", "project__slug")

    @admin.display(description="summary")
    def excerpt(self, revision: EntryRevision) -> str:
        return Truncator(revision.summary).chars(60)
