"""projects.core.outbound_http: no address that people name leads inside."""

import socket
import ssl
import subprocess
import time
from contextlib import suppress
from functools import partial
from ipaddress import ip_network
from threading import Thread

import httpcore2
import pytest

from config.settings.env import load, networks
from config.settings.security import ServerVariables
from projects.core import outbound_http
from projects.core.outbound_http import (
    AddressNotAllowedError,
    OutboundError,
    OutboundFailure,
    UnreachableError,
    check_url,
    request,
)
from tests.addresses import NEVER_CONNECTED, PUBLIC, REBINDING_URLS, REDIRECTED
from tests.receiver import Reply

ROOM = ip_network("127.0.0.1/32")


@pytest.fixture
def inside(settings, connector, receiver):
    """A receiver on this machine that may be reached."""
    settings.OUTBOUND_ALLOW = [ROOM]
    connector.receivers.add(receiver.address)
    return receiver


def test_the_list_is_long_enough():
    assert len(NEVER_CONNECTED) >= 200


@pytest.mark.parametrize("ask", [check_url, partial(request, "GET")])
def test_an_address_that_leads_inside_is_not_connected_to(connector, ask):
    allowed = []
    for url in NEVER_CONNECTED:
        with suppress(OutboundError):
            ask(url)
            allowed.append(url)
    assert (allowed, connector.connections) == ([], [])


@pytest.mark.parametrize("url", REBINDING_URLS)
def test_a_name_that_changes_after_the_check_leads_to_what_was_checked(connector, url):
    with pytest.raises(UnreachableError):
        request("GET", url)
    assert connector.connections == [(PUBLIC, 80)]
    with pytest.raises(AddressNotAllowedError):
        request("GET", url)
    assert connector.connections == [(PUBLIC, 80)]


@pytest.mark.parametrize("url", REBINDING_URLS)
def test_an_address_that_passed_at_registration_is_checked_again_at_delivery(connector, url):
    check_url(url)
    with pytest.raises(AddressNotAllowedError):
        request("POST", url, content=b"{}")
    assert connector.connections == []


def test_the_recorder_sees_what_is_connected_to_without_the_guard(connector, monkeypatch):
    """So that the tests above can fail: the same requests through an unguarded connector."""
    monkeypatch.setattr(
        outbound_http, "PublicAddressBackend", lambda _deadline: httpcore2.SyncBackend()
    )
    urls = [*NEVER_CONNECTED, *REBINDING_URLS]
    reached = 0
    for url in urls:
        before = len(connector.connections)
        with pytest.raises(OutboundError):
            request("GET", url)
        reached += len(connector.connections) > before
    inside = {address for address, _port in connector.connections}
    assert {"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "fd00::1"} <= inside
    # The rest is refused for its form: a protocol, a port, credentials, no host at all.
    assert reached > 150


@pytest.mark.parametrize("location", REDIRECTED)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(inside, connector, location, status):
    inside.reply = Reply(status, {"Location": location})
    answer = request("POST", inside.url, content=b"{}")
    assert (answer.status, answer.headers["location"]) == (status, location)
    assert connector.connections == [inside.address]


def test_a_public_address_of_this_machine_leads_inside(connector, monkeypatch):
    class Interface:
        family, address = socket.AF_INET, PUBLIC

    check_url("http://good.example.org/")
    monkeypatch.setattr(outbound_http.psutil, "net_if_addrs", lambda: {"eth0": [Interface]})
    with pytest.raises(AddressNotAllowedError):
        check_url("http://good.example.org/")


@pytest.mark.parametrize(
    "url",
    [
        "https://good.example.org/hook?a=1#top",
        "http://good.example.org:8080",
        "https://good.example.org:8443/",
        f"http://{PUBLIC}/",
        "http://[2606:2800:220:1::1]/",
        "http://1572395790/",
    ],
)
def test_a_public_address_is_connected_to(connector, url):
    check_url(url)
    assert connector.connections == []
    with pytest.raises(UnreachableError) as failed:
        request("GET", url)
    assert failed.value.reason == OutboundFailure.CONNECTION
    assert len(connector.connections) == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://good.example.org/", OutboundFailure.MALFORMED),
        ("http://good.example.org/" + "a" * 2000, OutboundFailure.MALFORMED),
        ("http://me:secret@good.example.org/", OutboundFailure.CREDENTIALS),
        ("http://good.example.org:25/", OutboundFailure.PORT),
        ("http://localhost/", OutboundFailure.INSIDE),
    ],
)
def test_a_refusal_says_why_and_not_where(connector, url, reason):
    with pytest.raises(AddressNotAllowedError) as refused:
        check_url(url)
    assert refused.value.reason == reason
    assert str(refused.value) == str(reason.label)


def test_a_name_that_nobody_knows_may_be_known_later(connector):
    with pytest.raises(UnreachableError) as failed:
        check_url("http://nowhere.example.org/")
    assert failed.value.reason == OutboundFailure.UNKNOWN_HOST


def test_only_allowed_addresses_are_reached(inside, connector):
    inside.reply = Reply(200, {"X-Kind": "test"}, b"hello")
    url = f"{inside.url}/a%20b?c=d#e"
    answer = request("POST", url, headers={"X-Sent": "yes"}, content=b"{}", max_bytes=5)
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (200, b"hello", "test")
    (received,) = inside.requests
    assert (received.method, received.path, received.body) == ("POST", "/a%20b?c=d", b"{}")
    assert received.headers["host"] == inside.url.removeprefix("http://")
    assert received.headers["x-sent"] == "yes"
    with pytest.raises(AddressNotAllowedError):
        request("GET", inside.url.replace("127.0.0.1", "127.0.0.2"))
    with pytest.raises(AddressNotAllowedError):
        request("GET", inside.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"))
    assert connector.connections == [inside.address]


def test_a_proxy_of_the_environment_is_not_asked(inside, connector, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://10.0.0.1:3128")
    assert request("GET", inside.url).status == 200
    assert connector.connections == [inside.address]


def test_an_answer_is_read_up_to_its_bound(inside):
    inside.reply = Reply(200, {}, b"x" * 1001)
    with pytest.raises(UnreachableError) as failed:
        request("GET", inside.url, max_bytes=1000)
    assert failed.value.reason == OutboundFailure.TOO_LARGE
    assert request("GET", inside.url, max_bytes=1001).body == b"x" * 1001
    assert request("GET", inside.url).body == b""


@pytest.mark.parametrize("reply", [Reply(delay=3), Reply(body=b"x" * 100, drip=0.1)])
def test_all_of_a_request_ends_by_its_deadline(inside, reply):
    inside.reply = reply
    with pytest.raises(UnreachableError) as failed:
        request("GET", inside.url, max_bytes=1000, seconds=0.5)
    assert failed.value.reason == OutboundFailure.TIMEOUT


def test_a_resolver_that_says_nothing_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(3))
    with pytest.raises(UnreachableError) as failed:
        check_url("http://good.example.org/", seconds=0.2)
    assert failed.value.reason == OutboundFailure.TIMEOUT


def test_a_certificate_is_verified_against_the_name(settings, connector, tmp_path, monkeypatch):
    settings.OUTBOUND_ALLOW = [ROOM]
    trusted = ssl.create_default_context(cafile=certificate(tmp_path, "good.example.org"))
    port = tls_server(connector, tmp_path)
    connector.names |= {"good.example.org": [["127.0.0.1"]], "other.example.org": [["127.0.0.1"]]}
    with pytest.raises(UnreachableError) as failed:
        request("GET", f"https://good.example.org:{port}/")
    assert failed.value.reason == OutboundFailure.TLS
    monkeypatch.setattr(outbound_http, "trusted_certificates", lambda: trusted)
    assert request("GET", f"https://good.example.org:{port}/", max_bytes=9).body == b"hello"
    with pytest.raises(UnreachableError) as failed:
        request("GET", f"https://other.example.org:{port}/")
    assert failed.value.reason == OutboundFailure.TLS


def certificate(folder, name: str) -> str:
    """A certificate for `name` that nobody signed, with its key beside it."""
    created = folder / "certificate.pem"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(created)]
    command = ["openssl", "req", "-x509", "-days", "1", *subject, *key, *files]
    subprocess.run(command, check=True, capture_output=True)
    return str(created)


def tls_server(connector, folder) -> int:
    """The port of a server that says hello over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    listening = socket.create_server(("127.0.0.1", 0))
    connector.receivers.add(listening.getsockname())

    def serve() -> None:
        while True:
            try:
                with context.wrap_socket(listening.accept()[0], server_side=True) as tls_socket:
                    tls_socket.recv(10_000)
                    tls_socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            except OSError:
                continue

    Thread(target=serve, daemon=True).start()
    return listening.getsockname()[1]


@pytest.mark.parametrize("value", ["10.0.0.0/33", "somewhere", "10.0.0.1/8", "10.0.0.0/8;::1"])
def test_a_setting_that_names_no_networks_stops_the_start(value, monkeypatch):
    monkeypatch.setenv("STRATA_OUTBOUND_ALLOW", value)
    with pytest.raises(SystemExit) as stopped:
        load(ServerVariables)
    message = str(stopped.value)
    assert message.startswith("strata: STRATA_OUTBOUND_ALLOW takes networks such as")
    assert value not in message


def test_the_setting_takes_networks_and_addresses():
    allowed_networks = networks("10.1.0.0/16, ::1,192.168.7.4")
    assert allowed_networks == [
        ip_network("10.1.0.0/16"),
        ip_network("::1"),
        ip_network("192.168.7.4"),
    ]
