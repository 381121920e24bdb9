"""The IP address of the client, taking trusted proxies into account."""

import ipaddress
import logging

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port

# Used for requests through a Unix socket, which have no address.
LOCALHOST = "127.0.0.1"

log = logging.getLogger(__name__)


def client_ip(request: HttpRequest) -> str:
    """Return the client of the outermost trusted proxy (STRATA_TRUSTED_PROXIES), otherwise the
    peer.

    A header with fewer entries than trusted proxies is ignored: the request did not pass through
    all proxies, so its sender may have written every entry.
    """
    proxies: int = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    header = request.headers.get("X-Forwarded-For", "")
    if proxies and header:
        entries = header.split(",")
        if len(entries) >= proxies and (address := _address(entries[-proxies])):
            return address
        log.warning("forwarded_for_ignored entries=%d proxies=%d", len(entries), proxies)
    return _address(request.META.get("REMOTE_ADDR", "")) or LOCALHOST


def client_network(request: HttpRequest) -> str:
    """Return the address of the client; for IPv6, its /64 network, which one client controls."""
    address = ipaddress.ip_address(client_ip(request))
    # A socket for both protocols shows IPv4 clients as ::ffff:192.0.2.1.
    if address.version == 4 or address.ipv4_mapped:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _address(text: str) -> str | None:
    """Return the normalised address in `text`, without port and zone; None if it is invalid."""
    text = text.strip()
    host, port = split_domain_port(text)
    if port:
        text = host
    bare = text.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return None
