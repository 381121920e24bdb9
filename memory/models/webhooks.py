"""Webhooks of a project and their deliveries."""

import secrets
from datetime import timedelta
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from memory.models.leased import LeasedModel, LeasedQuerySet
from projects.core.outbound_http import MAX_URL_CHARS
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_user_key, parent_key, project_key


class WebhookEvent(models.TextChoices):
    """An event that a webhook can deliver. The values are public API and must not change."""

    MESSAGE_POSTED = "message.posted", _("Message posted")
    MESSAGE_EDITED = "message.edited", _("Message edited")
    MESSAGE_DELETED = "message.deleted", _("Message deleted")
    REPLY_FINISHED = "reply.finished", _("Reply finished")
    SESSION_CLOSED = "session.closed", _("Chat closed")
    ENTRY_WRITTEN = "entry.written", _("Memory added or changed")
    ENTRY_ROLLED_UP = "entry.rolled_up", _("Memories merged")
    MEMORY_PROPOSED = "memory.proposed", _("Review needed")
    MEMORY_FORGOTTEN = "memory.forgotten", _("Something forgotten")
    FACT_CHANGED = "fact.changed", _("Fact added or changed")
    IMPORT_DONE = "import.done", _("Import finished")
    TEST = "webhook.test", _("Test")


# A test event is delivered only to the webhook that is being tested.
SUBSCRIBABLE_EVENTS = [
    (event.value, event.label) for event in WebhookEvent if event != WebhookEvent.TEST
]


class WebhookOffReason(models.TextChoices):
    OWNER = "owner", _("An owner turned it off.")
    CREATOR = "creator", _("The owner who created it is no longer an owner of the project.")
    STAFF = "staff", _("An administrator turned it off.")
    FAILING = "failing", _("No delivery succeeded for three days.")
    GONE = "gone", _("The receiver reported that it no longer exists (410).")


def new_salt() -> str:
    return secrets.token_hex(16)


class WebhookQuerySet(LeasedQuerySet):
    def subscribed_to(self, project_id: UUID, event: str) -> "WebhookQuerySet":
        """Return the active webhooks of a project that subscribe to `event`."""
        return self.filter(project=project_id, off_because="", events__contains=[event])

    def with_due_deliveries(self) -> "WebhookQuerySet":
        due = Delivery.objects.due().filter(webhook=OuterRef("pk"))
        return self.filter(Exists(due), off_because="").unleased().ready()


class Webhook(IdModel, LeasedModel):
    """A URL to which events of a project are posted.

    The secret is not stored: it is derived from the salt and the server's key. Only one worker at a
    time delivers to a webhook. After a failure, `next_try_at` is the time of the next attempt.
    """

    project = project_key("webhooks")
    url = models.CharField(_("URL"), max_length=MAX_URL_CHARS)
    events = ArrayField(
        models.CharField(max_length=20, choices=SUBSCRIBABLE_EVENTS), verbose_name=_("events")
    )
    salt = models.CharField(_("salt"), max_length=32, default=new_salt, editable=False)
    previous_salt = models.CharField(_("previous salt"), max_length=32, blank=True, editable=False)
    previous_until = models.DateTimeField(
        _("previous secret valid until"),
        null=True,
        blank=True,
        help_text=_("The time until which the previous secret also signs."),
    )
    off_because = models.CharField(
        _("reason for being off"),
        max_length=10,
        choices=WebhookOffReason.choices,
        blank=True,
        help_text=_("Empty: the webhook is on."),
    )
    off_since = models.DateTimeField(_("off since"), null=True, blank=True)
    failing_since = models.DateTimeField(_("failing since"), null=True, blank=True)
    created_by = optional_user_key(_("created by"), blank=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(off_because="", off_since=None)
                | ~Q(off_because="") & Q(off_since__isnull=False),
                name="webhook_off_has_a_time",
            )
        ]

    def __str__(self) -> str:
        return self.host

    @property
    def host(self) -> str:
        """Return the host of the URL for display. The rest of the URL may contain a secret."""
        return self.url.partition("://")[2].partition("/")[0].partition("?")[0]

    @property
    def is_on(self) -> bool:
        return not self.off_because


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    DELIVERED = "delivered", _("Delivered")
    GIVEN_UP = "given_up", _("Failed")


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def waiting(self) -> "DeliveryQuerySet":
        return self.filter(state=DeliveryState.WAITING)

    def due(self) -> "DeliveryQuerySet":
        """Return the deliveries to attempt now, by the database clock."""
        return self.waiting().filter(next_try_at__lte=Now())

    def older_than(self, age: timedelta) -> "DeliveryQuerySet":
        return self.filter(created_at__lt=Now() - age)


class Delivery(IdModel, ProjectScopedModel):
    """One event for one webhook, inserted in the transaction of the event.

    It contains ids and numbers but no text, and is kept for some time after the delivery.
    """

    project = project_key()
    webhook = parent_key(Webhook, _("webhook"), "deliveries", db_index=False)
    event = models.CharField(_("event"), max_length=20, choices=WebhookEvent.choices)
    data = models.JSONField(_("data"), default=dict)
    state = models.CharField(
        _("state"), max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_try_at = models.DateTimeField(_("next attempt"), null=True, blank=True, db_default=Now())
    tried_at = models.DateTimeField(_("last attempt"), null=True, blank=True)
    status_code = models.PositiveSmallIntegerField(_("HTTP status"), null=True, blank=True)
    latency_ms = models.PositiveIntegerField(_("response time (ms)"), null=True, blank=True)
    error = models.CharField(
        _("error"), max_length=200, blank=True, help_text=_("The reason of the failure.")
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["webhook", "-id"], name="delivery_recent"),
            models.Index(
                fields=["webhook", "next_try_at", "id"],
                name="delivery_due",
                condition=Q(state=DeliveryState.WAITING),
            ),
            models.Index(fields=["created_at"], name="delivery_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} at {self.created_at:%Y-%m-%d %H:%M}"
