"""Parsing of the mail server's URL."""

from typing import Any
from urllib.parse import unquote, urlsplit

SMTP = "django.core.mail.backends.smtp.EmailBackend"
CONSOLE = "django.core.mail.backends.console.EmailBackend"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def mail_settings(address: str) -> dict[str, Any]:
    """Return Django's settings for smtp+tls://USER:PASSWORD@HOST:PORT, smtps://… or smtp://….

    smtp+tls upgrades a plain connection, smtps encrypts from the start, and console:// prints mail.
    Special characters in the password, such as @, must be percent-encoded. Raises `ValueError`.
    """
    parts = urlsplit(address)
    if parts.scheme == "console":
        return {"EMAIL_BACKEND": CONSOLE}
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(address)
    return {
        "EMAIL_BACKEND": SMTP,
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }
