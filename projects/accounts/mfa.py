"""Second factors: encryption of their secrets, and names of passkeys."""

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


class StrataMFAAdapter(DefaultMFAAdapter):
    """Encrypts the secrets of codes with the server's key, so that a copy of the database, or a
    backup, is not enough to compute codes.
    """

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": gettext_lazy("This code is incorrect or was already used."),
    }

    def encrypt(self, text: str) -> str:
        return _fernet().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return the plain text; a random secret if the server's key has changed."""
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
    """Return the cipher of second factors. Its keys are derived from the server's long keys."""
    ciphers = []
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        derived = hashlib.blake2b(force_bytes(key), digest_size=32, person=b"strata-factors")
        ciphers.append(Fernet(base64.urlsafe_b64encode(derived.digest())))
    return MultiFernet(ciphers)
