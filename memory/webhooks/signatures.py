"""Signatures, as https://www.standardwebhooks.com says: HMAC-SHA256 over id.timestamp.body.

A secret is not kept. It is made of the webhook's salt and the server's key, so that neither the
database nor a copy of it tells it, and another salt is another secret.
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
    """What its receiver is given once, to check signatures with."""
    return PREFIX + base64.b64encode(_key(webhook, webhook.salt)).decode()


def signed(webhook: Webhook, message_id: str, moment: int, body: bytes) -> Mapping[str, str]:
    """The headers for `body`, sent at `moment` (seconds since 1970, UTC). For a while after a
    change of the secret there are two signatures, of which a receiver needs to know one.
    """
    content = f"{message_id}.{moment}.".encode() + body
    salts = [webhook.salt]
    if webhook.previous_until is not None and webhook.previous_until > timezone.now():
        salts.append(webhook.previous_salt)
    signatures = [
        base64.b64encode(hmac.new(_key(webhook, salt), content, hashlib.sha256).digest()).decode()
        for salt in salts
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def _key(webhook: Webhook, salt: str) -> bytes:
    """32 bytes."""
    return salted_hmac("memory.webhooks", f"{webhook.pk}:{salt}", algorithm="sha256").digest()
