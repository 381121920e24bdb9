"""Requests to addresses that people name: to the public internet alone, never to what lies inside.

What is checked is what is connected to. A name is resolved once; only if every address that it has
is public, one of them is connected to, by number. So no name, however it is spelled and whatever
its resolver says the next time, leads to this machine, its network or a cloud's own services. TLS
is verified against the name, no redirect is followed, no proxy of the environment is used, and
everything about a request ends by one deadline. STRATA_OUTBOUND_ALLOW names inside addresses that
may be reached all the same.
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

Address = IPv4Address | IPv6Address

# Seconds, from the look-up of the name to the end of the answer, and for each try to connect.
TOTAL_SECONDS = 10.0
CONNECT_SECONDS = 4.0
# Of a name with many addresses so many are tried.
TRIED_ADDRESSES = 3
MAX_URL_LENGTH = 2000

# Outside of it nothing is a public host: loopback, mapped IPv4, NAT64, unique local, link-local, …
# https://www.iana.org/assignments/ipv6-unicast-address-assignments/
UNICAST_IPV6 = ip_network("2000::/3")
# What Python's `is_global`, which differs by version, may let through, of
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
        # Not special for IANA; on machines in Azure it is the cloud's own.
        "168.63.129.16/32",
        # Teredo among others; documentation; 6to4, which carries an IPv4 address; documentation.
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
]
# Below 1024 only HTTP's own; above, no port on which something else is at home that would take a
# request for its own language. https://fetch.spec.whatwg.org/#port-blocking
LOW_PORTS = {80, 443}
OTHERS_PORTS = set(map(int, "1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6679".split()))
OTHERS_PORTS |= {6697, 10080, *range(6665, 6670)}


class Reason(TextChoices):
    """Why nothing was sent, or nothing came back."""

    MALFORMED = "malformed", _("This is not an http:// or https:// address.")
    CREDENTIALS = "credentials", _("An address here carries no user name and no password.")
    PORT = "port", _("Nothing that speaks HTTP should listen on this port.")
    INSIDE = "inside", _("This address does not lead to the public internet.")
    UNKNOWN_HOST = "unknown_host", _("No host of this name was found.")
    TIMEOUT = "timeout", _("The answer took too long.")
    TLS = "tls", _("The certificate could not be verified.")
    CONNECTION = "connection", _("The connection failed.")
    TOO_LARGE = "too_large", _("The answer is too large.")


class OutboundError(Exception):
    """`reason` says why; str() says it to people."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.reason.label)


class Refused(OutboundError):
    """The address is not one to go to: nothing was sent."""


class Unreachable(OutboundError):
    """It did not work this time: no such name, no connection, no answer in time or bounds."""


@dataclass(frozen=True)
class Answer:
    """`headers` by their names in lower case; a redirect (3xx) is an answer like any other."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def check(url: str, *, seconds: float = TOTAL_SECONDS) -> None:
    """Resolves the host of `url` and connects to nothing. Raises Refused, and Unreachable when
    the name is not known now.
    """
    target = _target(url)
    _public_addresses(target.host.decode(), _port(target), time.monotonic() + seconds)


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    max_bytes: int = 0,
    seconds: float = TOTAL_SECONDS,
) -> Answer:
    """The answer to one request, which blocks: in async code, call it in a thread.

    Of the body `max_bytes` are read, more raise Unreachable; with 0 the body is left unread.
    Raises Refused and Unreachable.
    """
    target = _target(url)
    deadline = time.monotonic() + seconds
    fields = {"User-Agent": "Strata", "Accept-Encoding": "identity", **(headers or {})}
    # Host as in the address, with the brackets that IPv6 needs.
    fields["Host"] = httpx2.URL(url).netloc.decode()
    try:
        with (
            httpcore2.ConnectionPool(
                ssl_context=_trust(), network_backend=_Guarded(deadline)
            ) as pool,
            pool.stream(
                method,
                target,
                headers=list(fields.items()),
                content=content,
                extensions={"timeout": {"connect": CONNECT_SECONDS}},
            ) as response,
        ):
            body = _bounded(response.iter_stream(), max_bytes) if max_bytes else b""
            return Answer(response.status, _readable(response.headers), body)
    except httpcore2.TimeoutException as error:
        raise Unreachable(Reason.TIMEOUT) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise Unreachable(Reason.CONNECTION) from error


def _target(url: str) -> httpcore2.URL:
    """`url` in parts, its name in IDNA. Raises Refused."""
    try:
        parsed = httpx2.URL(url)
        port = parsed.port
    except (httpx2.InvalidURL, UnicodeError, TypeError) as error:
        raise Refused(Reason.MALFORMED) from error
    host = parsed.raw_host
    # A percent sign would be an escape, or the zone of an address that is not public anyway.
    if parsed.scheme not in ("http", "https") or not host or b"%" in host or b"\\" in host:
        raise Refused(Reason.MALFORMED)
    if len(url) > MAX_URL_LENGTH:
        raise Refused(Reason.MALFORMED)
    if parsed.userinfo:
        raise Refused(Reason.CREDENTIALS)
    target = httpcore2.URL(
        scheme=parsed.raw_scheme, host=host, port=port, target=parsed.raw_path or b"/"
    )
    number = _port(target)
    if not (number in LOW_PORTS or 1024 <= number <= 65535) or number in OTHERS_PORTS:
        raise Refused(Reason.PORT)
    return target


def _port(target: httpcore2.URL) -> int:
    if target.port is not None:
        return target.port
    return 443 if target.scheme == b"https" else 80


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that this machine trusts; SSL_CERT_FILE may name others."""
    return httpcore2.default_ssl_context()


class _Guarded(httpcore2.SyncBackend):
    """Connects to public addresses only, by number, and ends all it does by `deadline`."""

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
        failed: Exception = httpcore2.ConnectError()
        for address in _public_addresses(host, port, self._deadline)[:TRIED_ADDRESSES]:
            seconds = _left(self._deadline, timeout)
            try:
                stream = super().connect_tcp(
                    str(address), port, seconds, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return _Timed(stream, self._deadline)
        raise failed


class _Timed(httpcore2.NetworkStream):
    """A stream that waits until `deadline` all in all, not for so long at each byte."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        seconds = _left(self._deadline, timeout)
        try:
            secured = self._stream.start_tls(ssl_context, server_hostname, seconds)
        except httpcore2.ConnectError as error:
            if isinstance(error.__cause__, ssl.SSLError):
                raise Unreachable(Reason.TLS) from error
            raise
        return _Timed(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float, at_most: float | None = None) -> float:
    """Seconds until `deadline`, or `at_most`. Raises Unreachable when there are none."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise Unreachable(Reason.TIMEOUT)
    return seconds if at_most is None else min(seconds, at_most)


def _public_addresses(host: str, port: int, deadline: float) -> list[Address]:
    """All addresses of `host`, in the resolver's order. Raises Refused when one is not public."""
    found = _resolved(host, port, deadline)
    if not all(map(_may_reach, found)):
        raise Refused(Reason.INSIDE)
    return found


def _resolved(host: str, port: int, deadline: float) -> list[Address]:
    """The resolver knows no time-out, so it is asked in a thread that may be left behind."""
    told: SimpleQueue[list | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            told.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            told.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = told.get(timeout=_left(deadline))
    except Empty as error:
        raise Unreachable(Reason.TIMEOUT) from error
    if isinstance(answer, Exception) or not answer:
        raise Unreachable(Reason.UNKNOWN_HOST)
    return list(dict.fromkeys(ip_address(found[4][0]) for found in answer))


def _may_reach(address: Address) -> bool:
    if any(address in network for network in settings.OUTBOUND_ALLOW):
        return True
    if address.version == 6 and address not in UNICAST_IPV6:
        return False
    if not address.is_global or any(address in network for network in SPECIAL):
        return False
    # A public address of this very machine leads past its firewall to whatever listens here.
    return address not in _own_addresses()


def _own_addresses() -> set[Address]:
    internet = (socket.AF_INET, socket.AF_INET6)
    return {
        ip_address(one.address.partition("%")[0])
        for interface in psutil.net_if_addrs().values()
        for one in interface
        if one.family in internet
    }


def _bounded(chunks: Iterable[bytes], max_bytes: int) -> bytes:
    body = b""
    for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise Unreachable(Reason.TOO_LARGE)
    return body


def _readable(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
