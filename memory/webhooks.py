"""Webhooks: deliver events of a project to other programs, at least once each.

Each event is stored as a `Delivery` in the transaction of the event (memory/webhook_events.py), and
workers send it later: in order, with only one worker at a time for each webhook. The database is
the source of truth: if a broker message is lost or a worker is killed, the delivery is only
delayed.

A delivery is attempted up to ten times within about a day, with increasing pauses. After each
failure, nothing is sent to the webhook for a pause, usually half a minute to half an hour. Then
later deliveries are sent, even if the failed delivery still waits for its next attempt. A delivery
that fails every time is given up and stays in the log.

Signatures have the format of https://www.standardwebhooks.com: HMAC-SHA256 over id.timestamp.body.
Secrets are not stored. A secret is derived from the webhook's salt and the server's key. Therefore
a copy of the database does not reveal it, and a new salt creates a new secret.
"""

import base64
import hashlib
import hmac
import json
import logging
import random
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.http import parse_http_date_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from memory.models import Delivery, DeliveryState, Webhook, WebhookEvent, WebhookOffReason
from memory.models.webhooks import new_salt
from projects.core import outbound_http
from projects.core.errors import InvalidInputError
from projects.models import Project

log = logging.getLogger(__name__)

MAX_WEBHOOKS = 20
# How long the previous secret also signs, so that receivers can switch to the new secret.
SECRET_OVERLAP = timedelta(hours=24)
SECRET_PREFIX = "whsec_"
# The duration of a lease, longer than any request. Each attempt renews the lease. If a worker is
# killed, other workers can deliver to its webhook after this time.
LEASE = timedelta(seconds=60)
# How long one task sends to one webhook before another task continues, in seconds.
TASK_BUDGET_S = 20.0
# The first pause. Each later pause is four times as long, up to MAX_RETRY. The tenth attempt is
# about 27 hours after the first.
FIRST_RETRY = timedelta(seconds=30)
MAX_RETRY = timedelta(hours=6)
MAX_ATTEMPTS = 10
# The maximum age of a delivery. Older ones are given up, even after fewer attempts.
MAX_AGE = timedelta(hours=30)
# The maximum pause for a receiver after failures. The first is half a minute; then it doubles.
MAX_BACKOFF = timedelta(minutes=30)
# A webhook is switched off if all deliveries have failed for this time.
SWITCH_OFF_AFTER = timedelta(days=3)
LOG_RETENTION = timedelta(days=30)

NOT_OK = _("The server responded with an error.")
REDIRECTED = _("The server responded with a redirect. Enter the final URL instead.")
HTTP_GONE = 410
# The length of a date in an HTTP header, with room for its former formats.
MAX_DATE_CHARS = 40


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
        raise InvalidInputError(gettext("A project can have at most %(most)d webhooks.") % most)
    return Webhook.objects.create(project=project, url=url, events=sorted(events), created_by=by)


def change(webhook: Webhook, **changes) -> None:
    """Change `url`, which must have passed `check_url`, or `events`.

    A pause of the webhook after failures ends. Failed deliveries keep the times of their next
    attempts.
    """
    if "events" in changes:
        changes["events"] = sorted(changes["events"])
    _save(webhook, next_try_at=None, **changes)


def change_secret(webhook: Webhook) -> None:
    """Create a new secret. The previous secret also signs for SECRET_OVERLAP."""
    until = timezone.now() + SECRET_OVERLAP
    _save(webhook, previous_salt=webhook.salt, previous_until=until, salt=new_salt())


def switch_on(webhook: Webhook, by: Any) -> None:
    """Switch the webhook on and reset its failures. The owner `by` takes it over.

    Events that occurred while it was off are not sent.
    """
    if not webhook.is_on:
        reset = {"failing_since": None, "failures": 0, "next_try_at": None, "last_error": ""}
        _save(webhook, off_because="", off_since=None, created_by=by, **reset)


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


def secret_of(webhook: Webhook) -> str:
    """Return the secret with which the receiver checks signatures."""
    return SECRET_PREFIX + base64.b64encode(_key(webhook, webhook.salt)).decode()


def signature_headers(
    webhook: Webhook, message_id: str, timestamp: int, body: bytes
) -> Mapping[str, str]:
    """Return the headers for `body`, sent at `timestamp` (Unix time in seconds).

    For some time after a change of the secret, there are two signatures. One of them must match.
    """
    content = f"{message_id}.{timestamp}.".encode() + body
    salts = [webhook.salt]
    if webhook.previous_until is not None and webhook.previous_until > timezone.now():
        salts.append(webhook.previous_salt)
    signatures = [
        base64.b64encode(hmac.new(_key(webhook, salt), content, hashlib.sha256).digest()).decode()
        for salt in salts
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def _key(webhook: Webhook, salt: str) -> bytes:
    """Return the signing key, 32 bytes."""
    return salted_hmac("memory.webhooks", f"{webhook.pk}:{salt}", algorithm="sha256").digest()


@dataclass(frozen=True)
class DeliveryResult:
    """The result of one attempt. `error` is empty after success.

    `retry_after_s` is the pause that the receiver requested, in seconds.
    """

    status_code: int | None
    error: str
    latency_ms: int
    retry_after_s: float = 0


def due() -> list[UUID]:
    """Return the ids of webhooks with a delivery that is due."""
    return list(Webhook.objects.with_due_deliveries().values_list("pk", flat=True)[:1_000])


def deliver(webhook_id: UUID, budget_s: float = TASK_BUDGET_S) -> bool:
    """Send due deliveries to a webhook for `budget_s` seconds.

    Return False if the time is over, because more deliveries may be due. Return True if nothing can
    be sent now: no delivery is due, or the webhook is off, leased by another worker, or paused
    after a failure.
    """
    deadline = time.monotonic() + budget_s
    # Repeat, because other workers may have skipped deliveries while this one held the lease.
    while time.monotonic() < deadline:
        webhook = _claim(webhook_id)
        if webhook is None:
            return True
        while time.monotonic() < deadline and _deliver_next(webhook):
            pass
        _held(webhook).update(lease_holder=None, lease_until=None)
    return False


def _claim(webhook_id: UUID) -> Webhook | None:
    """Lease the webhook with one conditional UPDATE, if a delivery is due and it is not leased."""
    free = Webhook.objects.with_due_deliveries().filter(pk=webhook_id)
    if not free.update(lease_holder=uuid4(), lease_until=Now() + LEASE):
        return None
    return Webhook.objects.select_related("project").filter(pk=webhook_id).first()


def _held(webhook: Webhook):
    return Webhook.objects.filter(pk=webhook.pk, lease_holder=webhook.lease_holder)


def _deliver_next(webhook: Webhook) -> bool:
    """Send the delivery that has been due for the longest time. Return whether it succeeded.

    Deliveries that became due at the same time are sent in the order of their events. Return False
    also if no delivery is due, or if `_begin` returns False.
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
    """Renew the lease, count the attempt, and set the time of the next attempt.

    The attempt is counted before it is made, so that it also counts if the worker is killed. Return
    False if the lease is lost, the webhook is off, or the delivery no longer waits.
    """
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
    """Return the pause after this number of attempts, varied randomly by up to 20 %."""
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
    """Return the request body. It has the same bytes at each attempt."""
    payload = {
        "type": delivery.event,
        "timestamp": delivery.created_at.isoformat().replace("+00:00", "Z"),
        # Deliveries from before version 0.2.0 do not contain the project.
        "data": {"project": webhook.project.slug, **delivery.data},
    }
    return json.dumps(payload, separators=(",", ":")).encode()


def _retry_after_s(response: outbound_http.OutboundResponse) -> float:
    """Return the pause in Retry-After, in seconds, at most MAX_RETRY. It is a number or a date."""
    value = response.headers.get("retry-after", "")
    if response.status not in (429, 503):
        return 0
    if value.isdecimal():
        return min(float(value), MAX_RETRY.total_seconds())
    seconds = (parse_http_date_safe(value[:MAX_DATE_CHARS]) or 0) - time.time()
    return min(max(seconds, 0), MAX_RETRY.total_seconds())


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
        switch_off(webhook, WebhookOffReason.GONE)
    elif failing.exists():
        switch_off(webhook, WebhookOffReason.FAILING)


def _record(delivery: Delivery, result: DeliveryResult, **changes: object) -> None:
    Delivery.objects.filter(pk=delivery.pk).waiting().update(
        status_code=result.status_code, latency_ms=result.latency_ms, error=result.error, **changes
    )


def give_up() -> None:
    """Give up the deliveries that are older than MAX_AGE."""
    late = Delivery.objects.waiting().older_than(MAX_AGE)
    late.update(state=DeliveryState.GIVEN_UP, next_try_at=None)


def clear() -> None:
    """Delete the deliveries that are older than LOG_RETENTION."""
    Delivery.objects.older_than(LOG_RETENTION).delete()
