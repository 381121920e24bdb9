"""The mail server, set by one address."""

import pytest

from config.settings.auth import CONSOLE, mail_settings
from config.settings.env import read_secret


@pytest.mark.parametrize(
    ("address", "port", "starttls", "tls"),
    [
        ("smtp+tls://mail.example.org", 587, True, False),
        ("smtps://mail.example.org", 465, False, True),
        ("smtp://mail.example.org:2525", 2525, False, False),
    ],
)
def test_the_scheme_says_how_it_is_encrypted(address, port, starttls, tls):
    settings = mail_settings(address)
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"]) == ("mail.example.org", port)
    assert (settings["EMAIL_USE_TLS"], settings["EMAIL_USE_SSL"]) == (starttls, tls)


def test_names_and_passwords_may_hold_what_addresses_are_made_of():
    settings = mail_settings("smtp+tls://a%40b.org:p%3A%2F@mail.example.org")
    assert (settings["EMAIL_HOST_USER"], settings["EMAIL_HOST_PASSWORD"]) == ("a@b.org", "p:/")


def test_it_may_be_printed():
    assert mail_settings("console://") == {"EMAIL_BACKEND": CONSOLE}


@pytest.mark.parametrize(
    "wrong", ["mail.example.org", "http://mail.example.org", "smtp://", "smtp://host:port"]
)
def test_an_invalid_address_is_refused(wrong):
    with pytest.raises(ValueError):
        mail_settings(wrong)


def test_a_secret_may_stand_in_a_file(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.write_text("hush\n")
    monkeypatch.setenv("STRATA_TEST_SECRET", "")
    monkeypatch.setenv("STRATA_TEST_SECRET_FILE", str(path))
    assert read_secret("STRATA_TEST_SECRET") == "hush"


def test_a_file_that_cannot_be_read_stops_the_start(monkeypatch):
    monkeypatch.setenv("STRATA_TEST_SECRET_FILE", "/nowhere/at/all")
    with pytest.raises(SystemExit, match="STRATA_TEST_SECRET_FILE takes the path"):
        read_secret("STRATA_TEST_SECRET")
