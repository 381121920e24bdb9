"""Create, change and switch off webhooks. The pages and the API share these functions."""

from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.models import DeliveryState, Webhook, WebhookOffReason
from memory.models.webhooks import new_salt
from projects.core import outbound_http
from projects.core.errors import InvalidInputError
from projects.models import Project

MAX_WEBHOOKS = 20
# How long the previous secret also signs, so that receivers can switch to the new secret.
SECRET_OVERLAP = timedelta(hours=24)


def check_url(url: str) -> str:
    """Return `url` if it currently leads to the public internet. Raises InvalidInputError."""
    try:
        outbound_http.check_url(url)
    except outbound_http.OutboundError as error:
        raise InvalidInputError(str(error)) from error
    return url


@transaction.atomic
def register(project: Project, url: str, events: Collection[str], by) -> Webhook:
    """Create a webhook. `url` must have passed `check_url`. Raises InvalidInputError."""
    # Lock the project, so that two concurrent requests cannot exceed the limit.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if Webhook.objects.filter(project=project).count() >= MAX_WEBHOOKS:
        most = {"most": MAX_WEBHOOKS}
        raise InvalidInputError(_("A project can have at most %(most)d webhooks.") % most)
    return Webhook.objects.create(project=project, url=url, events=sorted(events), created_by=by)


def change(webhook: Webhook, **changes) -> None:
    """Change `url`, which must have passed `check_url`, or `events`. Pending deliveries become
    due.
    """
    if "events" in changes:
        changes["events"] = sorted(changes["events"])
    _save(webhook, next_try_at=None, **changes)


def change_secret(webhook: Webhook) -> None:
    """Create a new secret. The previous secret also signs for SECRET_OVERLAP."""
    until = timezone.now() + SECRET_OVERLAP
    _save(webhook, previous_salt=webhook.salt, previous_until=until, salt=new_salt())


def switch_on(webhook: Webhook) -> None:
    """Switch the webhook on and reset its failures. Events that occurred while it was off are not
    sent.
    """
    if not webhook.is_on:
        reset = {"failing_since": None, "failures": 0, "next_try_at": None, "last_error": ""}
        _save(webhook, off_because="", off_since=None, **reset)


@transaction.atomic
def switch_off(webhook: Webhook, because: WebhookOffReason) -> None:
    """Switch the webhook off, and give up its pending deliveries."""
    on = Webhook.objects.filter(pk=webhook.pk, off_because="")
    if on.update(off_because=because, off_since=Now()):
        webhook.deliveries.waiting().update(state=DeliveryState.GIVEN_UP, next_try_at=None)
        webhook.refresh_from_db()


def _save(webhook: Webhook, **changes) -> None:
    for name, value in changes.items():
        setattr(webhook, name, value)
    webhook.save(update_fields=changes)
