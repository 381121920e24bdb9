"""Encryption of stored secrets with the server's key, so that a copy of the database, or a backup,
is not enough to read them.
"""

import base64
import hashlib

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes


def cipher(purpose: str) -> MultiFernet:
    """Return the cipher for one kind of secret; `purpose` has at most 16 bytes.

    Its keys are derived from the server's long keys. It encrypts with the first, and decrypts what
    any of them encrypted.
    """
    ciphers = []
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        derived = hashlib.blake2b(force_bytes(key), digest_size=32, person=purpose.encode())
        ciphers.append(Fernet(base64.urlsafe_b64encode(derived.digest())))
    return MultiFernet(ciphers)
