"""What waits is sent: one worker at a time for each webhook, in order.

A failed delivery is tried again after ever longer waits, some ten times in about a day; meanwhile
those after it are sent, once the receiver was left alone for a moment. What could not be delivered
is given up and stays in the log.
"""

import json
import logging
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext_noop as _

from memory.models import Delivery, DeliveryState, Event, OffBecause, Webhook
from memory.webhooks import registering
from memory.webhooks.signing import signed
from projects import outbound

log = logging.getLogger(__name__)

# Longer than one request can take: a killed worker's webhook is free again after so long.
LEASE = timedelta(seconds=60)
# Seconds for which one task delivers to one webhook, and leaves the rest to another.
STRETCH = 20.0
# Thirty seconds, then four times as long each time, never more than six hours: with ten attempts
# the last is some 27 hours after the first.
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(hours=6)
MOST_ATTEMPTS = 10
# Whatever was not tried so often by then, since the receiver failed at others, is given up too.
TOO_LATE = timedelta(hours=30)
# A receiver that fails is left alone for half a minute, then twice as long, up to so long.
LONGEST_REST = timedelta(minutes=30)
# One that did nothing but fail for so long is not told any more.
PATIENCE = timedelta(days=3)
KEPT = timedelta(days=30)

NOT_OK = _("It answered with an error.")
REDIRECTED = _("It answered with a redirect, which is not followed.")
GONE = 410


@dataclass(frozen=True)
class Outcome:
    """`error` is empty when it was delivered. `patience`: seconds the receiver asked for."""

    status_code: int | None
    error: str
    latency_ms: int
    patience: float = 0


def due() -> list[UUID]:
    """The webhooks that something waits for."""
    return list(Webhook.objects.with_something_due().values_list("pk", flat=True)[:1_000])


def deliver(webhook_id: UUID, stretch: float = STRETCH) -> bool:
    """Sends what is due to one webhook for some `stretch` of seconds; False when there is more."""
    deadline = time.monotonic() + stretch
    while time.monotonic() < deadline:
        webhook = _claim(webhook_id)
        if webhook is None:
            return True
        # What came after the last look, while others saw the webhook held, is looked for again.
        while time.monotonic() < deadline and _deliver_next(webhook):
            pass
        _release(webhook)
    return False


def _claim(webhook_id: UUID) -> Webhook | None:
    """The webhook, if something is due and nobody else is at it: one conditional update."""
    free = Webhook.objects.with_something_due().filter(pk=webhook_id)
    if not free.update(lease_holder=uuid4(), lease_until=Now() + LEASE):
        return None
    return Webhook.objects.select_related("project").filter(pk=webhook_id).first()


def _held(webhook: Webhook):
    return Webhook.objects.filter(pk=webhook.pk, lease_holder=webhook.lease_holder)


def _release(webhook: Webhook) -> None:
    _held(webhook).update(lease_holder=None, lease_until=None)


def _deliver_next(webhook: Webhook) -> bool:
    """Sends what has been due for longest, in order what was never tried, and what failed after
    it; False when there is nothing, or the receiver is to be left alone.

    The attempt is on the record before it is made, so that a killed worker's counts.
    """
    delivery = webhook.deliveries.due().order_by("next_try_at", "id").first()
    if delivery is None or not _begin(webhook, delivery):
        return False
    outcome = _send(webhook, delivery)
    if outcome.error:
        _note_failure(webhook, delivery, outcome)
    else:
        _note_success(webhook, delivery, outcome)
    return not outcome.error


@transaction.atomic
def _begin(webhook: Webhook, delivery: Delivery) -> bool:
    """False when the webhook is somebody else's by now, or is off."""
    if not _held(webhook).filter(off_because="").update(lease_until=Now() + LEASE):
        return False
    delivery.attempts += 1
    return bool(
        Delivery.objects.waiting()
        .filter(pk=delivery.pk)
        .update(
            attempts=delivery.attempts,
            tried_at=Now(),
            next_try_at=Now() + wait_after(delivery.attempts),
        )
    )


def wait_after(attempts: int) -> timedelta:
    """How long a delivery waits after its so-manieth attempt, give or take a fifth."""
    seconds = FIRST_WAIT.total_seconds() * 4.0 ** (attempts - 1)
    return timedelta(seconds=min(seconds, LONGEST_WAIT.total_seconds()) * random.uniform(0.8, 1.2))


def _send(webhook: Webhook, delivery: Delivery) -> Outcome:
    body = body_of(webhook, delivery)
    headers = {
        "Content-Type": "application/json",
        **signed(webhook, str(delivery.pk), int(time.time()), body),
    }
    began = time.monotonic()
    try:
        answer = outbound.request("POST", webhook.url, headers=headers, content=body)
    except outbound.OutboundError as error:
        log.info("not_delivered delivery=%s reason=%s", delivery.pk, error.reason.value)
        return Outcome(None, str(error), _milliseconds_since(began))
    latency = _milliseconds_since(began)
    if 200 <= answer.status < 300:
        return Outcome(answer.status, "", latency)
    log.info("not_delivered delivery=%s status=%s", delivery.pk, answer.status)
    error_text = REDIRECTED if 300 <= answer.status < 400 else NOT_OK
    return Outcome(answer.status, error_text, latency, _retry_after(answer))


def body_of(webhook: Webhook, delivery: Delivery) -> bytes:
    """The same bytes at each attempt."""
    told = {
        "type": delivery.event,
        "timestamp": delivery.created_at.isoformat().replace("+00:00", "Z"),
        "data": {"project": webhook.project.slug, **delivery.data},
    }
    return json.dumps(told, separators=(",", ":")).encode()


def _milliseconds_since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)


def _retry_after(answer: outbound.Answer) -> float:
    """Seconds, at most LONGEST_WAIT; a date, which few send, is not read."""
    asked = answer.headers.get("retry-after", "")
    if answer.status not in (429, 503) or not asked.isdecimal():
        return 0
    return min(float(asked), LONGEST_WAIT.total_seconds())


@transaction.atomic
def _note_success(webhook: Webhook, delivery: Delivery, outcome: Outcome) -> None:
    _note(delivery, outcome, state=DeliveryState.DELIVERED, next_try_at=None)
    webhook.failures = 0
    _held(webhook).update(failures=0, next_try_at=None, failing_since=None, last_error="")


@transaction.atomic
def _note_failure(webhook: Webhook, delivery: Delivery, outcome: Outcome) -> None:
    most = 1 if delivery.event == Event.TEST else MOST_ATTEMPTS
    if delivery.attempts >= most:
        _note(delivery, outcome, state=DeliveryState.GIVEN_UP, next_try_at=None)
    else:
        _note(delivery, outcome)
    rest = FIRST_WAIT * 2 ** min(webhook.failures, 10)
    seconds = max(min(rest, LONGEST_REST).total_seconds(), outcome.patience)
    webhook.failures += 1
    _held(webhook).update(
        failures=webhook.failures,
        next_try_at=Now() + timedelta(seconds=seconds * random.uniform(1, 1.2)),
        failing_since=Coalesce("failing_since", Now()),
        last_error=outcome.error,
    )
    if outcome.status_code == GONE:
        registering.switch_off(webhook, OffBecause.GONE)
    elif Webhook.objects.filter(pk=webhook.pk, failing_since__lt=Now() - PATIENCE).exists():
        registering.switch_off(webhook, OffBecause.FAILING)


def _note(delivery: Delivery, outcome: Outcome, **changes: object) -> None:
    Delivery.objects.filter(pk=delivery.pk).waiting().update(
        status_code=outcome.status_code,
        latency_ms=outcome.latency_ms,
        error=outcome.error,
        **changes,
    )


def give_up() -> None:
    """Gives up what has waited for too long."""
    late = Delivery.objects.waiting().older_than(TOO_LATE)
    late.update(state=DeliveryState.GIVEN_UP, next_try_at=None)


def clear() -> None:
    """Clears the log of what is older than it is kept."""
    Delivery.objects.older_than(KEPT).delete()
