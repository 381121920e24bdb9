"""SSRF guard: requests to URLs that users enter can only reach the public internet.

A host name is resolved once. The connection is made to one of its IP addresses, and only if all of
them are public. Therefore neither a special spelling of a name nor a later DNS answer can lead to
this machine, its network or internal services of a cloud. TLS certificates are verified for the
name. Redirects are not followed, and proxies in the environment are ignored. One deadline applies
to the whole request. STRATA_OUTBOUND_ALLOW lists internal addresses that are permitted anyway.
"""

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from queue import Empty, SimpleQueue
from typing import Any

import httpcore2
import httpx2
import psutil
from django.conf import settings
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from projects.core.errors import DomainError, InvalidInputError, UnavailableError

Address = IPv4Address | IPv6Address

# The maximum time from resolving the name to the end of the response.
TOTAL_TIMEOUT_S = 10.0
# The maximum time of each attempt to connect.
CONNECT_TIMEOUT_S = 4.0
MAX_ADDRESSES_TRIED = 3
MAX_URL_CHARS = 2000

# All public IPv6 addresses are in this network. Loopback, mapped IPv4, NAT64, unique local,
# link-local and similar addresses are outside of it.
# https://www.iana.org/assignments/ipv6-unicast-address-assignments/
UNICAST_IPV6 = ip_network("2000::/3")
# Special networks that `is_global` of some Python versions treats as global:
# https://www.iana.org/assignments/iana-ipv4-special-registry/ and iana-ipv6-special-registry/.
SPECIAL = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "224.0.0.0/3",
        # Not a special network, but an internal service of Azure's machines.
        "168.63.129.16/32",
        "2001::/23",  # Teredo and others
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: each address contains an IPv4 address
        "3fff::/20",  # documentation
    )
]
# Below 1024, only the ports of HTTP are permitted. Above, ports are blocked if their servers could
# interpret a request as a command. https://fetch.spec.whatwg.org/#port-blocking
LOW_PORTS = {80, 443}
BLOCKED_PORTS = set(map(int, "1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6679".split()))
BLOCKED_PORTS |= {6697, 10080, *range(6665, 6670)}


class OutboundFailure(TextChoices):
    """The reason why nothing was sent, or why there is no usable response."""

    MALFORMED = "malformed", _("This is not a valid http:// or https:// address.")
    CREDENTIALS = "credentials", _("The address must not contain a username or password.")
    PORT = "port", _("This port is reserved for another protocol.")
    INSIDE = "inside", _("This address is not on the public internet.")
    UNKNOWN_HOST = "unknown_host", _("The host name could not be found.")
    TIMEOUT = "timeout", _("The server took too long to respond.")
    TLS = "tls", _("The server’s certificate could not be verified.")
    CONNECTION = "connection", _("The connection failed.")
    TOO_LARGE = "too_large", _("The response is too large.")


class OutboundError(DomainError):
    """A failed request. Its message is the label of `reason`."""

    def __init__(self, reason: OutboundFailure) -> None:
        super().__init__(reason.label, code=reason.value)
        self.reason = reason


class AddressNotAllowedError(OutboundError, InvalidInputError):
    """The address is invalid or not public. Nothing was sent."""


class UnreachableError(OutboundError, UnavailableError):
    """A temporary failure: unknown name, no connection, or no acceptable response."""


@dataclass(frozen=True)
class OutboundResponse:
    """A response. The names in `headers` are in lower case. Redirects (3xx) are not followed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def check_url(url: str, *, seconds: float = TOTAL_TIMEOUT_S) -> None:
    """Resolve the host of `url` without connecting to it.

    Raises `AddressNotAllowedError`, or `UnreachableError` if the name cannot be resolved now.
    """
    target = _parse(url)
    _public_addresses(target.host.decode(), _port(target), time.monotonic() + seconds)


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    max_bytes: int = 0,
    seconds: float = TOTAL_TIMEOUT_S,
) -> OutboundResponse:
    """Return the response to one request. This blocks: in async code, call it in a thread.

    The body is read up to `max_bytes`; a longer body raises `UnreachableError`. With 0, the body is
    not read. Raises `AddressNotAllowedError` and `UnreachableError`.
    """
    target = _parse(url)
    deadline = time.monotonic() + seconds
    fields = {"User-Agent": "Strata", "Accept-Encoding": "identity", **(headers or {})}
    # The host as in the URL, with the brackets that IPv6 addresses need.
    fields["Host"] = httpx2.URL(url).netloc.decode()
    backend = PublicAddressBackend(deadline)
    try:
        with (
            httpcore2.ConnectionPool(
                ssl_context=trusted_certificates(), network_backend=backend
            ) as pool,
            pool.stream(
                method,
                target,
                headers=list(fields.items()),
                content=content,
                extensions={"timeout": {"connect": CONNECT_TIMEOUT_S}},
            ) as response,
        ):
            body = b""
            for chunk in response.iter_stream() if max_bytes else ():
                body += chunk
                if len(body) > max_bytes:
                    raise UnreachableError(OutboundFailure.TOO_LARGE)
            response_headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in response.headers
            }
            return OutboundResponse(response.status, response_headers, body)
    except httpcore2.TimeoutException as error:
        raise UnreachableError(OutboundFailure.TIMEOUT) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise UnreachableError(OutboundFailure.CONNECTION) from error


def _parse(url: str) -> httpcore2.URL:
    """Return the parts of `url`, the host name in IDNA. Raises `AddressNotAllowedError`."""
    try:
        parsed = httpx2.URL(url)
        port = parsed.port
    except (httpx2.InvalidURL, UnicodeError, TypeError) as error:
        raise AddressNotAllowedError(OutboundFailure.MALFORMED) from error
    host = parsed.raw_host
    # Reject percent signs. They begin an escape sequence, or the zone of an IPv6 address that is
    # not public, such as `fe80::1%eth0`.
    is_host = host and b"%" not in host and b"\\" not in host
    if parsed.scheme not in ("http", "https") or not is_host or len(url) > MAX_URL_CHARS:
        raise AddressNotAllowedError(OutboundFailure.MALFORMED)
    if parsed.userinfo:
        raise AddressNotAllowedError(OutboundFailure.CREDENTIALS)
    target = httpcore2.URL(
        scheme=parsed.raw_scheme, host=host, port=port, target=parsed.raw_path or b"/"
    )
    number = _port(target)
    if not (number in LOW_PORTS or 1024 <= number <= 65535) or number in BLOCKED_PORTS:
        raise AddressNotAllowedError(OutboundFailure.PORT)
    return target


def _port(target: httpcore2.URL) -> int:
    if target.port is not None:
        return target.port
    return 443 if target.scheme == b"https" else 80


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the CA certificates that this machine trusts. SSL_CERT_FILE can name others."""
    return httpcore2.default_ssl_context()


class PublicAddressBackend(httpcore2.SyncBackend):
    """Connects to public IP addresses only. All work ends at `deadline`."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        failure: Exception = httpcore2.ConnectError()
        for address in _public_addresses(host, port, self._deadline)[:MAX_ADDRESSES_TRIED]:
            seconds = _seconds_left(self._deadline, timeout)
            try:
                stream = super().connect_tcp(
                    str(address), port, seconds, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return DeadlineStream(stream, self._deadline)
        raise failure


class DeadlineStream(httpcore2.NetworkStream):
    """A stream whose reads and writes share one deadline instead of a time-out for each."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _seconds_left(self._deadline, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _seconds_left(self._deadline, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        seconds = _seconds_left(self._deadline, timeout)
        try:
            secured = self._stream.start_tls(ssl_context, server_hostname, seconds)
        except httpcore2.ConnectError as error:
            if isinstance(error.__cause__, ssl.SSLError):
                raise UnreachableError(OutboundFailure.TLS) from error
            raise
        return DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _seconds_left(deadline: float, at_most: float | None = None) -> float:
    """Return the seconds until `deadline`, up to `at_most`. Raises `UnreachableError` if it has
    passed.
    """
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise UnreachableError(OutboundFailure.TIMEOUT)
    return seconds if at_most is None else min(seconds, at_most)


def _public_addresses(host: str, port: int, deadline: float) -> list[Address]:
    """Return all addresses of `host` in the order of the resolver.

    Raises `AddressNotAllowedError` if one of them is not public.
    """
    addresses = _resolve(host, port, deadline)
    if not all(map(is_allowed_address, addresses)):
        raise AddressNotAllowedError(OutboundFailure.INSIDE)
    return addresses


def _resolve(host: str, port: int, deadline: float) -> list[Address]:
    # The resolver has no time-out. It runs in a thread that is abandoned at the deadline.
    results: SimpleQueue[list | Exception] = SimpleQueue()

    def resolve() -> None:
        try:
            results.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            results.put(error)

    threading.Thread(target=resolve, daemon=True).start()
    try:
        result = results.get(timeout=_seconds_left(deadline))
    except Empty as error:
        raise UnreachableError(OutboundFailure.TIMEOUT) from error
    if isinstance(result, Exception) or not result:
        raise UnreachableError(OutboundFailure.UNKNOWN_HOST)
    return list(dict.fromkeys(ip_address(info[4][0]) for info in result))


def is_allowed_address(address: Address) -> bool:
    if any(address in network for network in settings.OUTBOUND_ALLOW):
        return True
    if address.version == 6 and address not in UNICAST_IPV6:
        return False
    if not address.is_global or any(address in network for network in SPECIAL):
        return False
    # Public addresses of this machine are not permitted, because they would bypass its firewall.
    own_addresses = {
        ip_address(own.address.partition("%")[0])
        for interface in psutil.net_if_addrs().values()
        for own in interface
        if own.family in (socket.AF_INET, socket.AF_INET6)
    }
    return address not in own_addresses
