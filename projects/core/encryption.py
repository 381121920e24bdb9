"""Encryption of stored secrets with the server's key. A copy of the database, such as a backup, is
then not enough to read them.
"""

import base64
import hashlib

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes


def cipher(purpose: str) -> MultiFernet:
    """Return the cipher for one kind of secret. `purpose` names it, in at most 16 bytes.

    The keys are derived from the server's secret keys. The first key encrypts; all keys can
    decrypt.
    """
    ciphers = []
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        derived = hashlib.blake2b(force_bytes(key), digest_size=32, person=purpose.encode())
        ciphers.append(Fernet(base64.urlsafe_b64encode(derived.digest())))
    return MultiFernet(ciphers)
