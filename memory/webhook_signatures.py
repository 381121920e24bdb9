"""Signatures in the format of https://www.standardwebhooks.com: HMAC-SHA256 over id.timestamp.body.

Secrets are not stored. A secret is derived from the webhook's salt and the server's key. Therefore
a copy of the database does not reveal it, and a new salt creates a new secret.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping

from django.utils import timezone
from django.utils.crypto import salted_hmac

from memory.models import Webhook

PREFIX = "whsec_"


def secret_of(webhook: Webhook) -> str:
    """Return the secret with which the receiver checks signatures."""
    return PREFIX + base64.b64encode(_key(webhook, webhook.salt)).decode()


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
