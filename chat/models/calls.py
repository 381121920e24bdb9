"""The log of model calls: user, model, tokens, price and outcome of each call."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_user_key, project_key

ANSWERED = "answered"


class CallKind(models.TextChoices):
    REPLY = "reply", _("reply")
    TITLE = "title", _("title")
    EMBEDDING = "embedding", _("search index")
    CONVERSATION = "conversation", _("chat summary")
    # Only in rows of earlier versions.
    MERGE = "merge", _("merge of partial chat summaries")
    DIGEST = "digest", _("later summary")
    DIGEST_RETRY = "again", _("later summary, second try with missing details")


# The kinds of calls that count for `Project.memory_daily_tokens`.
SUMMARY_KINDS = (CallKind.CONVERSATION, CallKind.MERGE, CallKind.DIGEST, CallKind.DIGEST_RETRY)


def cost_field(label, help_text="") -> models.DecimalField:
    """Return a field for an amount in US dollars; null if the price is not known."""
    return models.DecimalField(
        label, max_digits=12, decimal_places=6, null=True, blank=True, help_text=help_text
    )


class Call(IdModel, ProjectScopedModel):
    """One request to a model.

    Calls for summaries and calls to which a spending limit applies are inserted before the request.
    If the process dies during such a call, the row has no outcome. While `reserved_until` is in the
    future and there is no outcome, the reserved tokens and cost count against the limits. All other
    calls are inserted after the response.
    """

    project = project_key("calls")
    # The user who requested the call; null for automatic work.
    user = optional_user_key(db_index=False)
    token_id = models.UUIDField(
        _("API token ID"),
        null=True,
        blank=True,
        help_text=_("The public id of the API token of the request."),
    )
    kind = models.CharField(_("kind"), max_length=12, choices=CallKind.choices)
    model = models.CharField(_("model"), max_length=200)
    session_id = models.UUIDField(_("chat ID"), null=True, blank=True)
    message_id = models.UUIDField(_("message ID"), null=True, blank=True, help_text=_("The reply."))
    started_at = models.DateTimeField(_("started at"), default=timezone.now)
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), null=True, blank=True)
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    cached_tokens = models.PositiveIntegerField(
        _("cached tokens"),
        default=0,
        db_default=0,
        help_text=_("Input tokens that the provider read from its cache."),
    )
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    cost = cost_field(_("cost"), help_text=_("US dollars."))
    outcome = models.CharField(
        _("outcome"),
        max_length=200,
        blank=True,
        help_text=_("“answered”, or the reason of the failure."),
    )
    reserved_tokens = models.PositiveIntegerField(_("reserved tokens"), null=True, blank=True)
    reserved_cost = cost_field(_("reserved cost"))
    reserved_until = models.DateTimeField(_("reserved until"), null=True, blank=True)

    class Meta:
        # The table was created by the app `memory`.
        db_table = "memory_call"
        verbose_name = _("model call")
        verbose_name_plural = _("model calls")
        indexes = [
            models.Index(fields=["project", "-started_at"], name="call_recent"),
            models.Index(fields=["user", "started_at"], name="call_of_user"),
            models.Index(
                fields=["token_id", "started_at"],
                name="call_of_token",
                condition=Q(token_id__isnull=False),
            ),
            models.Index(fields=["reserved_until"], name="call_reserved", condition=Q(outcome="")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.model}"


class ModelPrice(IdModel):
    """A price that a server administrator has set. It replaces the price in `genai-prices`."""

    model = models.CharField(
        _("model"),
        max_length=200,
        unique=True,
        help_text=_("The name as projects use it, such as openai-chat:gpt-4o."),
    )
    input_price = models.DecimalField(
        _("input"), max_digits=12, decimal_places=6, help_text=_("US dollars for a million tokens.")
    )
    cached_price = models.DecimalField(
        _("cached input"),
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text=_("Empty: as other input."),
    )
    output_price = models.DecimalField(_("output"), max_digits=12, decimal_places=6, default=0)

    class Meta:
        ordering = ["model"]
        verbose_name = _("model price")
        verbose_name_plural = _("model prices")

    def __str__(self) -> str:
        return self.model
