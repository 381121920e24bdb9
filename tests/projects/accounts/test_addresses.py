"""From where somebody comes: as trusted proxies say, and else as the connection does."""

import pytest
from allauth.usersessions.models import UserSession
from django.test import RequestFactory

from projects.core.http.client_ip import client_ip

CONNECTED = "198.51.100.7"


def client_address(
    settings, proxies: int, forwarded: str | None, connected: str = CONNECTED
) -> str:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    return client_ip(RequestFactory().get("/", headers=headers, REMOTE_ADDR=connected))


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, None, CONNECTED),
        (0, "203.0.113.1", CONNECTED),
        (1, None, CONNECTED),
        (1, "203.0.113.1", "203.0.113.1"),
        # The first was there before, and may be anybody's invention.
        (1, "192.0.2.1, 203.0.113.1", "203.0.113.1"),
        (2, "203.0.113.1, 10.0.0.2", "203.0.113.1"),
        (2, "192.0.2.1,203.0.113.1,10.0.0.2", "203.0.113.1"),
        (1, "203.0.113.1:4711", "203.0.113.1"),
        (1, "[2001:DB8::1]:4711", "2001:db8::1"),
        (1, "[2001:db8::1]", "2001:db8::1"),
        (1, "fe80::1%eth0", "fe80::1"),
    ],
)
def test_it_is_what_the_outermost_trusted_proxy_says(settings, proxies, forwarded, address):
    assert client_address(settings, proxies, forwarded) == address


@pytest.mark.parametrize(
    ("proxies", "forwarded"),
    [(2, "203.0.113.1"), (3, "203.0.113.1, 10.0.0.2"), (1, "unknown"), (2, ", "), (1, "'; --")],
)
def test_a_header_that_did_not_come_through_all_of_them_is_not_believed(
    settings, caplog, proxies, forwarded
):
    assert client_address(settings, proxies, forwarded) == CONNECTED
    assert "forwarded_for_ignored" in caplog.text


def test_a_socket_of_this_machine_is_this_machine(settings):
    assert client_address(settings, 0, None, connected="") == "127.0.0.1"


@pytest.mark.django_db
def test_too_short_a_header_is_no_way_round_the_limits(client, owner, settings):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    for number in range(12):
        answer = client.post(
            "/accounts/login/",
            {"login": f"name{number}", "password": "wrong"},
            headers={"X-Forwarded-For": f"203.0.113.{number}"},
        )
        assert answer.status_code == 200
    assert "Too many attempts" in answer.content.decode()


@pytest.mark.django_db
def test_too_short_a_header_keeps_nobody_out(client, owner, settings, is_in):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    form = {"login": "olive", "password": "pass-word-1"}
    answer = client.post("/accounts/login/", form, headers={"X-Forwarded-For": "203.0.113.1"})
    assert answer["Location"] == "/"
    assert is_in(client)
    assert set(UserSession.objects.values_list("ip", flat=True)) == {"127.0.0.1"}
