"""Parsing of the mail server's URL."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

SMTP = "django.core.mail.backends.smtp.EmailBackend"
CONSOLE = "django.core.mail.backends.console.EmailBackend"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


@dataclass(frozen=True)
class MailServer:
    """A mail server. `starttls` upgrades a plain connection, `tls` encrypts from the start."""

    backend: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


def mail_server(address: str) -> MailServer:
    """Parse smtp+tls://USER:PASSWORD@HOST:PORT, smtps://…, smtp://… or console://.

    Special characters of the password, such as @, are percent-encoded. Raises `ValueError`.
    """
    parts = urlsplit(address)
    if parts.scheme == "console":
        return MailServer(CONSOLE)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(address)
    return MailServer(
        SMTP,
        parts.hostname,
        parts.port or PORTS[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        starttls=parts.scheme == "smtp+tls",
        tls=parts.scheme == "smtps",
    )
