"""Send pending deliveries: one worker at a time for each webhook, in order.

A failed delivery is retried after growing pauses, ten times in about a day. Meanwhile, later
deliveries are sent after a short pause for the receiver. A delivery that keeps failing is given up
and stays in the log.
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

from memory.models import Delivery, DeliveryState, Webhook, WebhookEvent, WebhookOffReason
from memory.webhooks import services
from memory.webhooks.signatures import signature_headers
from projects.core import outbound_http

log = logging.getLogger(__name__)

# Longer than one request can take. After this, the webhook of a killed worker is free again.
LEASE = timedelta(seconds=60)
# Seconds for which one task sends to one webhook, before another task continues.
TASK_BUDGET_S = 20.0
# 30 seconds, then four times as long each time, at most six hours: with ten attempts the last one
# is some 27 hours after the first.
FIRST_RETRY = timedelta(seconds=30)
MAX_RETRY = timedelta(hours=6)
MAX_ATTEMPTS = 10
# A delivery of this age is given up too, even if it had fewer attempts.
MAX_AGE = timedelta(hours=30)
# After a failure, the receiver gets a pause of half a minute, then twice as long, up to this.
MAX_BACKOFF = timedelta(minutes=30)
# A webhook whose deliveries all failed for this long is switched off.
SWITCH_OFF_AFTER = timedelta(days=3)
LOG_RETENTION = timedelta(days=30)

NOT_OK = _("The server responded with an error.")
REDIRECTED = _("The server responded with a redirect. Enter the final URL instead.")
HTTP_GONE = 410


@dataclass(frozen=True)
class DeliveryResult:
    """The result of one attempt. `error` is empty after success.

    `retry_after_s` is the pause in seconds that the receiver requested.
    """

    status_code: int | None
    error: str
    latency_ms: int
    retry_after_s: float = 0


def due() -> list[UUID]:
    """Return the ids of webhooks with a delivery that is due."""
    return list(Webhook.objects.with_due_deliveries().values_list("pk", flat=True)[:1_000])


def deliver(webhook_id: UUID, budget_s: float = TASK_BUDGET_S) -> bool:
    """Send due deliveries to one webhook for up to `budget_s`; return False if there are more."""
    deadline = time.monotonic() + budget_s
    while time.monotonic() < deadline:
        webhook = _claim(webhook_id)
        if webhook is None:
            return True
        # The outer loop looks again for deliveries that other workers skipped because of the lease.
        while time.monotonic() < deadline and _deliver_next(webhook):
            pass
        _held(webhook).update(lease_holder=None, lease_until=None)
    return False


def _claim(webhook_id: UUID) -> Webhook | None:
    """Lease the webhook with one conditional update, if a delivery is due and nobody holds it."""
    free = Webhook.objects.with_due_deliveries().filter(pk=webhook_id)
    if not free.update(lease_holder=uuid4(), lease_until=Now() + LEASE):
        return None
    return Webhook.objects.select_related("project").filter(pk=webhook_id).first()


def _held(webhook: Webhook):
    return Webhook.objects.filter(pk=webhook.pk, lease_holder=webhook.lease_holder)


def _deliver_next(webhook: Webhook) -> bool:
    """Send the delivery that has been due longest; untried ones in order, failed ones after them.

    Return False if there is none, or if the receiver is in a pause. The attempt is recorded before
    it is made, so that the attempt of a killed worker counts.
    """
    delivery = webhook.deliveries.due().order_by("next_try_at", "id").first()
    if delivery is None or not _begin(webhook, delivery):
        return False
    result = _send(webhook, delivery)
    if result.error:
        _record_failure(webhook, delivery, result)
    else:
        _record_success(webhook, delivery, result)
    return not result.error


@transaction.atomic
def _begin(webhook: Webhook, delivery: Delivery) -> bool:
    """Return False if the lease is lost or the webhook is off."""
    if not _held(webhook).filter(off_because="").update(lease_until=Now() + LEASE):
        return False
    delivery.attempts += 1
    return bool(
        Delivery.objects.waiting()
        .filter(pk=delivery.pk)
        .update(
            attempts=delivery.attempts,
            tried_at=Now(),
            next_try_at=Now() + retry_delay(delivery.attempts),
        )
    )


def retry_delay(attempts: int) -> timedelta:
    """Return the pause after this many attempts, with a random variation of 20 %."""
    seconds = FIRST_RETRY.total_seconds() * 4.0 ** (attempts - 1)
    return timedelta(seconds=min(seconds, MAX_RETRY.total_seconds()) * random.uniform(0.8, 1.2))


def _send(webhook: Webhook, delivery: Delivery) -> DeliveryResult:
    body = request_body(webhook, delivery)
    signature = signature_headers(webhook, str(delivery.pk), int(time.time()), body)
    headers = {"Content-Type": "application/json", **signature}
    started = time.monotonic()
    try:
        response = outbound_http.request("POST", webhook.url, headers=headers, content=body)
    except outbound_http.OutboundError as error:
        log.info("webhook_delivery_failed delivery=%s reason=%s", delivery.pk, error.reason.value)
        return DeliveryResult(None, str(error), int((time.monotonic() - started) * 1000))
    latency_ms = int((time.monotonic() - started) * 1000)
    if 200 <= response.status < 300:
        return DeliveryResult(response.status, "", latency_ms)
    log.info("webhook_delivery_failed delivery=%s status=%s", delivery.pk, response.status)
    reason = REDIRECTED if 300 <= response.status < 400 else NOT_OK
    return DeliveryResult(response.status, reason, latency_ms, _retry_after_s(response))


def request_body(webhook: Webhook, delivery: Delivery) -> bytes:
    """Return the body, which is the same bytes at each attempt."""
    payload = {
        "type": delivery.event,
        "timestamp": delivery.created_at.isoformat().replace("+00:00", "Z"),
        "data": {"project": webhook.project.slug, **delivery.data},
    }
    return json.dumps(payload, separators=(",", ":")).encode()


def _retry_after_s(response: outbound_http.OutboundResponse) -> float:
    """Return the seconds in Retry-After, at most MAX_RETRY; dates, which are rare, are ignored."""
    seconds = response.headers.get("retry-after", "")
    if response.status not in (429, 503) or not seconds.isdecimal():
        return 0
    return min(float(seconds), MAX_RETRY.total_seconds())


@transaction.atomic
def _record_success(webhook: Webhook, delivery: Delivery, result: DeliveryResult) -> None:
    _record(delivery, result, state=DeliveryState.DELIVERED, next_try_at=None)
    webhook.failures = 0
    _held(webhook).update(failures=0, next_try_at=None, failing_since=None, last_error="")


@transaction.atomic
def _record_failure(webhook: Webhook, delivery: Delivery, result: DeliveryResult) -> None:
    max_attempts = 1 if delivery.event == WebhookEvent.TEST else MAX_ATTEMPTS
    if delivery.attempts >= max_attempts:
        _record(delivery, result, state=DeliveryState.GIVEN_UP, next_try_at=None)
    else:
        _record(delivery, result)
    backoff = FIRST_RETRY * 2 ** min(webhook.failures, 10)
    seconds = max(min(backoff, MAX_BACKOFF).total_seconds(), result.retry_after_s)
    webhook.failures += 1
    _held(webhook).update(
        failures=webhook.failures,
        next_try_at=Now() + timedelta(seconds=seconds * random.uniform(1, 1.2)),
        failing_since=Coalesce("failing_since", Now()),
        last_error=result.error,
    )
    failing = Webhook.objects.filter(pk=webhook.pk, failing_since__lt=Now() - SWITCH_OFF_AFTER)
    if result.status_code == HTTP_GONE:
        services.switch_off(webhook, WebhookOffReason.GONE)
    elif failing.exists():
        services.switch_off(webhook, WebhookOffReason.FAILING)


def _record(delivery: Delivery, result: DeliveryResult, **changes: object) -> None:
    Delivery.objects.filter(pk=delivery.pk).waiting().update(
        status_code=result.status_code,
        latency_ms=result.latency_ms,
        error=result.error,
        **changes,
    )


def give_up() -> None:
    """Give up the deliveries that are older than MAX_AGE."""
    late = Delivery.objects.waiting().older_than(MAX_AGE)
    late.update(state=DeliveryState.GIVEN_UP, next_try_at=None)


def clear() -> None:
    """Delete the deliveries that are older than LOG_RETENTION."""
    Delivery.objects.older_than(LOG_RETENTION).delete()
