"""People at the door, and a server that sends mail."""

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client

PASSWORD = "pass-word-1"
SIGN_IN = "/accounts/login/"


@pytest.fixture(autouse=True)
def visits_are_noted() -> None:
    """Here they are."""


@pytest.fixture(autouse=True)
def nobody_tried_before(db) -> None:
    """What other tests tried stands in a table that no transaction of theirs took back."""
    cache.clear()


@pytest.fixture
def mail(settings, mailoutbox) -> list:
    settings.SENDS_MAIL = settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    return mailoutbox


@pytest.fixture
def sign_in() -> Callable:
    """A browser in which somebody signs in on the page that is there for it, and its answer."""

    def enter(login: str, password: str = PASSWORD, client: Client | None = None, **more):
        browser = client or Client()
        return browser, browser.post(SIGN_IN, {"login": login, "password": password} | more)

    return enter


@pytest.fixture
def olive(owner, sign_in) -> Client:
    """The owner's browser, which has just shown her password twice."""
    browser, answer = sign_in("olive")
    assert answer["Location"] == "/"
    browser.post("/accounts/confirm/", {"password": PASSWORD})
    return browser


@pytest.fixture
def is_in() -> Callable:
    def ask(browser: Client) -> bool:
        return browser.get("/account/").status_code == 200

    return ask
