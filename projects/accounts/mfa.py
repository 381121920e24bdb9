"""Second factors: encryption of their secrets, and default names of passkeys."""

import base64
import secrets

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from projects.core.encryption import cipher

PURPOSE = "strata-factors"


class StrataMFAAdapter(DefaultMFAAdapter):
    """Encrypts the secrets of one-time codes with the server's key. A copy of the database is then
    not enough to compute codes.
    """

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": gettext_lazy("This code is incorrect or was already used.")
    }

    def encrypt(self, text: str) -> str:
        return cipher(PURPOSE).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return the plain text. If the server's key has changed, return a random secret."""
        try:
            return cipher(PURPOSE).decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            return base64.b32encode(secrets.token_bytes(20)).decode()

    def get_totp_label(self, user) -> str:
        return f"{self._get_site_name()}: {user.get_username()}"

    def generate_authenticator_name(self, user, type: Authenticator.Type) -> str:
        number = Authenticator.objects.filter(user=user, type=type).count() + 1
        return _("Passkey %(number)s") % {"number": number}
