"""From which address a request comes: the one place that decides it."""

import ipaddress
import logging

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port

# Through a socket of this machine, whose other end has no address.
HERE = "127.0.0.1"

log = logging.getLogger(__name__)


def client_address(request: HttpRequest) -> str:
    """What the outermost of the trusted proxies (STRATA_TRUSTED_PROXIES) says who asked it; else
    the address that connected.

    A header with fewer entries than there are trusted proxies did not come through all of them:
    whoever sent it may have written each of its entries, so that none is believed.
    """
    proxies: int = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    told = request.headers.get("X-Forwarded-For", "")
    if proxies and told:
        entries = told.split(",")
        if len(entries) >= proxies and (address := _address(entries[-proxies])):
            return address
        log.warning("forwarded_for_not_believed entries=%d proxies=%d", len(entries), proxies)
    return _address(request.META.get("REMOTE_ADDR", "")) or HERE


def _address(text: str) -> str | None:
    """`text` in one way of writing it, without port and zone, or None if it is no address."""
    text = text.strip()
    host, port = split_domain_port(text)
    if port:
        text = host
    bare = text.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return None
