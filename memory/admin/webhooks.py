"""Admin pages of webhooks and their deliveries."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from memory import webhooks
from memory.admin.mixins import ActionAdmin
from memory.models import Delivery, Webhook, WebhookOffReason
from projects.admin import ReadOnlyAdmin


@admin.register(Webhook)
class WebhookAdmin(ActionAdmin):
    """Show only the host of the URL, because the rest of the URL may be a secret."""

    list_display = (
        "__str__",
        "project",
        "events",
        "off_because",
        "failing_since",
        "failures",
        "next_try_at",
        "last_error",
    )
    list_filter = ("off_because",)
    date_hierarchy = "created_at"
    search_fields = ("project__slug", "project__name", "=id")
    exclude = ("url",)
    actions = ("switch_off",)

    @admin.action(description=_("Turn off"), permissions=["act"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        for webhook in queryset:
            webhooks.switch_off(webhook, WebhookOffReason.STAFF)
        self.message_user(request, _("The webhooks are off. Owners can see the reason."))


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = (
        "event",
        "project",
        "webhook",
        "state",
        "attempts",
        "status_code",
        "latency_ms",
        "error",
        "created_at",
    )
    list_filter = ("state", "event")
    date_hierarchy = "created_at"
    search_fields = ("=id", "=webhook__id", "project__slug")
