"""A project's webhooks are made, changed and switched off: the one path behind page and API."""

from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.models import DeliveryState, OffBecause, Webhook
from memory.models.webhooks import new_salt
from projects import outbound
from projects.models import Project

MOST_WEBHOOKS = 20
# The secret before the last change signs too for so long, so that a receiver can change over.
OVERLAP = timedelta(hours=24)


class Refused(Exception):
    """A wish that cannot be met; the text says why, for people."""


def check_url(url: str) -> str:
    """`url` if it leads to the public internet now. Raises Refused, with the reason."""
    try:
        outbound.check(url)
    except outbound.OutboundError as error:
        raise Refused(str(error)) from error
    return url


@transaction.atomic
def register(project: Project, url: str, events: Collection[str], by) -> Webhook:
    """A new webhook for `events`, at a `url` that check_url let pass. Raises Refused."""
    # As writers do: two at once do not pass the limit together.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if Webhook.objects.filter(project=project).count() >= MOST_WEBHOOKS:
        raise Refused(_("A project takes at most %(most)d webhooks.") % {"most": MOST_WEBHOOKS})
    return Webhook.objects.create(project=project, url=url, events=sorted(events), created_by=by)


def change(webhook: Webhook, **changes) -> None:
    """Changes `url` (that check_url let pass) or `events`; what waits goes to the new address at
    once.
    """
    if "events" in changes:
        changes["events"] = sorted(changes["events"])
    _save(webhook, next_try_at=None, **changes)


def change_secret(webhook: Webhook) -> None:
    """Gives it another secret; the one until now signs too for OVERLAP."""
    until = timezone.now() + OVERLAP
    _save(webhook, previous_salt=webhook.salt, previous_until=until, salt=new_salt())


def switch_on(webhook: Webhook) -> None:
    """As if nothing had ever failed. What happened meanwhile is not told."""
    if not webhook.is_on:
        fresh = {"failing_since": None, "failures": 0, "next_try_at": None, "last_error": ""}
        _save(webhook, off_because="", off_since=None, **fresh)


@transaction.atomic
def switch_off(webhook: Webhook, because: OffBecause) -> None:
    """Nothing more is told; what still waits is given up."""
    on = Webhook.objects.filter(pk=webhook.pk, off_because="")
    if on.update(off_because=because, off_since=Now()):
        webhook.deliveries.waiting().update(state=DeliveryState.GIVEN_UP, next_try_at=None)
        webhook.refresh_from_db()


def _save(webhook: Webhook, **changes) -> None:
    for name, value in changes.items():
        setattr(webhook, name, value)
    webhook.save(update_fields=changes)
