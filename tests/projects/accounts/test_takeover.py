"""What somebody who has a session, a password or a mailbox of a user does not get by it."""

import time

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.conf import settings as django_settings
from django.contrib.auth.hashers import MD5PasswordHasher
from django.test import Client

from projects.models import Token
from tests.projects.accounts.test_factors import SECRET, code_of
from tests.projects.accounts.test_oidc import come, known, provider, server

pytestmark = pytest.mark.django_db
__all__ = ["provider", "server"]

PASSWORD = "pass-word-1"
SIGN_IN = "/accounts/login/"


def cookie(browser: Client) -> str:
    return browser.cookies[django_settings.SESSION_COOKIE_NAME].value


def with_planted_session() -> tuple[Client, str]:
    """Return a browser with a session that somebody else knows, such as by a link to join."""
    browser = Client()
    session = browser.session
    session["planted"] = True
    session.save()
    return browser, session.session_key


def in_by(key: str) -> bool:
    thief = Client()
    thief.cookies[django_settings.SESSION_COOKIE_NAME] = key
    return thief.get("/account/").status_code == 200


def test_a_planted_session_does_not_become_that_of_the_user(owner, is_in):
    browser, key = with_planted_session()
    browser.post(SIGN_IN, {"login": "olive", "password": PASSWORD})
    assert is_in(browser)
    assert cookie(browser) != key and not in_by(key)


def test_neither_with_a_second_factor(owner, is_in):
    TOTP.activate(owner, SECRET)
    browser, key = with_planted_session()
    browser.post(SIGN_IN, {"login": "olive", "password": PASSWORD})
    half = cookie(browser)
    browser.post("/accounts/factors/authenticate/", {"code": code_of(SECRET)})
    assert is_in(browser)
    assert not in_by(key) and not in_by(half)


def test_neither_through_a_provider(provider, owner, is_in):
    known(owner)
    browser, key = with_planted_session()
    come(browser)
    assert is_in(browser)
    assert not in_by(key)


def test_a_reset_password_does_not_replace_the_second_factor(client, owner, mail, is_in, sign_in):
    TOTP.activate(owner, SECRET)
    client.post("/accounts/password/forgotten/", {"email": owner.email})
    link = next(word for word in mail[0].body.split() if word.startswith("http"))
    form = client.get(link, follow=True).request["PATH_INFO"]
    client.post(form, {"password1": "new-words-2", "password2": "new-words-2"})
    assert not is_in(client)
    browser, answer = sign_in("olive", "new-words-2")
    assert answer["Location"] == "/accounts/factors/authenticate/"
    assert not is_in(browser)
    assert browser.get("/admin/").status_code == 302


def test_a_token_does_not_open_pages(owner, client):
    _token, secret = Token.issue(owner)
    bearer = {"Authorization": f"Bearer {secret}"}
    for page in ("/account/", "/account/tokens/", "/accounts/factors/", "/admin/"):
        assert client.get(page, headers=bearer).status_code == 302, page


def test_half_a_sign_in_changes_nothing_of_the_account(owner, sign_in):
    TOTP.activate(owner, SECRET)
    browser, _answer = sign_in("olive")
    pages = ["confirm", "mail", "password", "password/set", "factors/app/remove", "passkeys/add"]
    pages += ["factors/codes/new", "sessions", "provider", "factors/confirm", "passkeys/confirm"]
    for page in pages:
        answer = browser.post(f"/accounts/{page}/", {"password": PASSWORD, "email": "a@b.example"})
        assert answer.status_code in (302, 403), page
        assert answer.get("Location", "/accounts/login/").startswith("/accounts/"), page
    owner.refresh_from_db()
    assert owner.check_password(PASSWORD)
    assert not EmailAddress.objects.filter(email="a@b.example").exists()


@pytest.fixture
def old(olive) -> Client:
    """A browser whose user showed the password a day ago."""
    session = olive.session
    for method in session["account_authentication_methods"]:
        method["at"] = time.time() - 86_400
    session.save()
    return olive


def test_an_old_session_connects_and_disconnects_nothing(old, owner, provider):
    known(owner, "2")
    answer = come(old, process="connect")
    assert answer.redirect_chain[-1][0].startswith("/accounts/confirm/")
    assert SocialAccount.objects.count() == 1
    old.post("/accounts/provider/", {"account": SocialAccount.objects.get().pk})
    assert SocialAccount.objects.count() == 1


def test_an_account_of_another_is_not_connected(olive, owner, stranger, provider):
    known(stranger)
    come(olive, process="connect")
    assert SocialAccount.objects.get().user == stranger


def test_a_provider_does_not_open_an_account_that_is_switched_off(client, owner, provider, is_in):
    known(owner)
    owner.is_active = False
    owner.save()
    come(client)
    assert not is_in(client)


@pytest.mark.parametrize(
    "there", ["https://evil.example/", "//evil.example", "javascript:alert(1)"]
)
def test_a_provider_leads_to_no_other_site(client, owner, provider, there):
    known(owner)
    assert come(client, next=there).redirect_chain[-1][0] == "/"


@pytest.mark.parametrize("field", ["login", "password"])
def test_passwords_and_names_without_end_are_not_hashed(client, owner, monkeypatch, field):
    hashed: list[str] = []

    def encode(self, password: str, salt: str) -> str:
        hashed.append(password)
        return "hash"

    monkeypatch.setattr(MD5PasswordHasher, "encode", encode)
    form = {"login": "olive", "password": PASSWORD}
    client.post(SIGN_IN, form)
    assert hashed
    hashed.clear()
    answer = client.post(SIGN_IN, form | {field: "x" * 5_000})
    assert "has at most 4096 characters" in answer.content.decode()
    assert hashed == []
