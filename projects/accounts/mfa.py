"""Second factors: what they are called, and how what is kept of them is kept."""

import base64
import hashlib
import secrets

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


class Factors(DefaultMFAAdapter):
    """What codes are made of is kept encrypted by the server's key: who reads the database, or a
    backup of it, cannot make any.
    """

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": gettext_lazy("This code is wrong, or was used already."),
    }

    def encrypt(self, text: str) -> str:
        return _fernet().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Something that nobody knows, when the server's key is another by now."""
        try:
            return _fernet().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            return base64.b32encode(secrets.token_bytes(20)).decode()

    def get_totp_label(self, user) -> str:
        return f"{self._get_site_name()}: {user.get_username()}"

    def generate_authenticator_name(self, user, type: Authenticator.Type) -> str:
        number = Authenticator.objects.filter(user=user, type=type).count() + 1
        return _("Passkey %(number)s") % {"number": number}


def _fernet() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_key(one)) for one in keys])


def _key(secret: str | bytes) -> bytes:
    """32 bytes for second factors alone, of the server's key, which is long and random."""
    digest = hashlib.blake2b(force_bytes(secret), digest_size=32, person=b"strata-factors").digest()
    return base64.urlsafe_b64encode(digest)
