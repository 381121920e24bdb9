"""Where mail is handed over, told by one address."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

SMTP = "django.core.mail.backends.smtp.EmailBackend"
CONSOLE = "django.core.mail.backends.console.EmailBackend"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


@dataclass(frozen=True)
class MailServer:
    """`starttls` begins in the clear and turns to TLS before anything is said; `tls` is it from
    the first byte.
    """

    backend: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


def mail_server(address: str) -> MailServer:
    """Of smtp+tls://USER:PASSWORD@HOST:PORT, smtps://…, smtp://… or console://. What stands for
    itself in an address, such as @ in a password, is percent-encoded. Raises ValueError.
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
