"""Admin pages of background processes."""

from functools import partial

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from config.celery import app
from config.models import CrashedTask
from memory.admin.mixins import ActionAdmin


@admin.register(CrashedTask)
class CrashedTaskAdmin(ActionAdmin):
    list_display = ("task", "args", "crashes", "last_crash_at", "set_aside_at")
    list_filter = (("set_aside_at", admin.EmptyFieldListFilter), "task")
    search_fields = ("task",)
    ordering = ("-last_crash_at", "pk")
    actions = ("run_again",)

    @admin.action(description=_("Run again"), permissions=["act"])
    def run_again(self, request: HttpRequest, queryset: QuerySet) -> None:
        for row in queryset:
            transaction.on_commit(partial(app.send_task, row.task, row.args, row.kwargs))
        queryset.delete()
        self.message_user(request, _("The tasks run again. Their crash count was reset."))
