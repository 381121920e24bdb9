"""Signing in through a provider of OpenID Connect, at the wire."""

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
import requests
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone

from projects.models import Invitation, SpendingLimit
from tests.oidc_provider import CLIENT, SECRET, Provider

pytestmark = pytest.mark.django_db
LOGIN, CONNECTIONS = "/accounts/oidc/login/", "/accounts/provider/"


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with Provider() as new_provider:
        yield new_provider


@pytest.fixture
def provider(server, settings) -> Provider:
    """The configured provider, which lets nobody new in."""
    server.reset()
    settings.OIDC_ISSUER, settings.OIDC_NAME, settings.OIDC_SIGNUP = server.url, "Acme", False
    app = {"provider_id": "oidc", "name": "Acme", "client_id": CLIENT, "secret": SECRET}
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {
            "OAUTH_PKCE_ENABLED": True,
            "APPS": [app | {"settings": {"server_url": server.url}}],
        }
    }
    return server


def come(browser: Client, **form):
    """Goes through the provider and back; the answer to the way back, with what it leads to."""
    leaving = browser.post(LOGIN, form)
    location = html.unescape(re.search(r'url=(\S+)">', leaving.content.decode())[1])
    back = requests.get(location, allow_redirects=False, timeout=10).headers["Location"]
    parts = urlsplit(back)
    return browser.get(f"{parts.path}?{parts.query}", follow=True)


def known(user, uid: str = "1") -> None:
    SocialAccount.objects.create(user=user, provider="oidc", uid=uid)


def test_there_is_no_button_and_no_door_without_a_provider(client):
    assert "Acme" not in client.get("/accounts/login/").content.decode()
    assert client.post(LOGIN).status_code == 404
    assert client.get("/accounts/oidc/callback/").status_code == 404


def test_there_is_a_button_with_one(client, provider):
    assert "Sign in with Acme" in client.get("/accounts/login/").content.decode()


def test_a_known_user_is_signed_in_and_redirected(client, provider, owner, is_in):
    known(owner)
    answer = come(client, next="/account/tokens/")
    assert answer.redirect_chain[-1][0] == "/account/tokens/"
    assert client.session["_auth_user_id"] == str(owner.pk)


def test_a_second_factor_is_asked_for_here_too(client, provider, owner, is_in):
    from allauth.mfa.totp.internal.auth import TOTP

    known(owner)
    TOTP.activate(owner, "JBSWY3DPEHPK3PXP")
    assert come(client).redirect_chain[-1][0] == "/accounts/factors/authenticate/"
    assert not is_in(client)


def test_a_new_user_is_not_let_in(client, provider, is_in, django_user_model):
    assert "need an invitation" in come(client).content.decode()
    assert not is_in(client)
    assert not django_user_model.objects.exists()


def test_a_new_user_is_let_in_if_the_settings_allow_it(client, provider, settings, is_in):
    settings.OIDC_SIGNUP = True
    provider.person |= {"email": "nina@example.org", "email_verified": True}
    come(client)
    assert is_in(client)
    account = SocialAccount.objects.get()
    assert (account.user.username, account.uid) == ("nina", "1")
    assert not account.user.has_usable_password()
    assert EmailAddress.objects.get(user=account.user).verified


def test_a_new_user_is_let_in_by_an_invitation(client, provider, owner, project, is_in):
    until = timezone.now() + timedelta(days=1)
    _invitation, secret = Invitation.issue(project, created_by=owner, max_uses=1, expires_at=until)
    client.get(f"/join/billing/{secret}/")
    answer = come(client)
    assert project.memberships.filter(user__username="nina").exists()
    assert is_in(client)
    assert answer.status_code == 200
    assert "need an invitation" in _another(provider, secret).content.decode()


def test_a_closed_invitation_keeps_nobody_out_if_the_settings_allow_everybody(
    client, provider, settings, owner, project, is_in
):
    settings.OIDC_SIGNUP = True
    until = timezone.now() + timedelta(days=1)
    _invitation, secret = Invitation.issue(project, created_by=owner, max_uses=1, expires_at=until)
    client.get(f"/join/billing/{secret}/")
    Invitation.objects.update(revoked_at=timezone.now())
    come(client)
    assert is_in(client)
    assert not project.memberships.filter(user__username="nina").exists()


def _another(provider: Provider, secret: str):
    provider.person = {"sub": "2", "preferred_username": "nils"}
    late = Client()
    late.get(f"/join/billing/{secret}/")
    return come(late)


def test_an_address_that_both_have_verified_leads_to_its_account(client, provider, owner):
    EmailAddress.objects.create(user=owner, email=owner.email, verified=True, primary=True)
    provider.person |= {"email": owner.email, "email_verified": True}
    come(client)
    assert client.session["_auth_user_id"] == str(owner.pk)
    assert SocialAccount.objects.get().user == owner
    assert owner.check_password("pass-word-1")


@pytest.mark.parametrize("email_verified", [False, None, "false", "no"])
def test_an_address_that_the_provider_has_not_verified_leads_to_none(
    client, provider, owner, is_in, email_verified
):
    EmailAddress.objects.create(user=owner, email=owner.email, verified=True, primary=True)
    provider.person |= {"email": owner.email} | (
        {} if email_verified is None else {"email_verified": email_verified}
    )
    page = come(client).content.decode()
    assert "sign in to it and connect the provider" in page
    assert not is_in(client)
    assert not SocialAccount.objects.exists()


def test_an_address_that_is_not_verified_here_leads_to_none(client, provider, owner, is_in):
    provider.person |= {"email": owner.email, "email_verified": True}
    page = come(client).content.decode()
    assert "sign in to it and connect the provider" in page
    assert not is_in(client)
    assert not SocialAccount.objects.exists()


def test_a_taken_address_makes_no_second_account(client, provider, settings, owner, is_in):
    settings.OIDC_SIGNUP = True
    provider.person |= {"email": owner.email, "email_verified": False}
    answer = come(client)
    assert answer.redirect_chain[-1][0] == "/accounts/provider/signup/"
    assert "If it is yours, sign in and connect Acme" in html.unescape(answer.content.decode())
    form = {"username": "nina", "email": owner.email}
    answer = client.post("/accounts/provider/signup/", form)
    assert "An account with this email address already exists" in answer.content.decode()
    assert not is_in(client)


def refused(answer, browser: Client, is_in) -> None:
    assert answer.status_code == 401
    assert "provider failed" in answer.content.decode()
    assert not is_in(browser)


def test_a_token_that_another_key_signed_is_refused(client, provider, owner, is_in):
    known(owner)
    provider.signer = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    refused(come(client), client, is_in)


@pytest.mark.parametrize("wrong", [{"aud": "other"}, {"iss": "http://other"}, {"exp": 1}])
def test_a_token_of_others_or_of_long_ago_is_refused(client, provider, owner, is_in, wrong):
    known(owner)
    provider.claims = wrong
    refused(come(client), client, is_in)


def test_userinfo_of_somebody_else_is_refused(client, provider, owner, is_in):
    known(owner, "2")
    provider.userinfo = {"sub": "2"}
    refused(come(client), client, is_in)


def test_a_way_back_that_this_browser_did_not_begin_is_refused(client, provider, owner, is_in):
    known(owner)
    answer = client.get("/accounts/oidc/callback/?code=code-0&state=made-up")
    refused(answer, client, is_in)


def test_a_sign_in_cancelled_at_the_provider_is_reported(client, provider):
    leaving = client.post(LOGIN).content.decode()
    state = re.search(r"state=(\w+)", leaving)[1]
    path = f"/accounts/oidc/callback/?error=access_denied&state={state}"
    assert "before you were signed in" in client.get(path, follow=True).content.decode()


def test_an_unreachable_provider_is_reported(client, provider, settings, is_in):
    app = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]
    app["settings"] = {"server_url": "http://127.0.0.1:1"}
    refused(client.post(LOGIN), client, is_in)


def test_an_account_is_connected_and_disconnected(olive, owner, provider, client):
    assert "Connect Acme" in olive.get(CONNECTIONS).content.decode()
    come(olive, process="connect")
    account = SocialAccount.objects.get(user=owner)
    come(client)
    assert client.session["_auth_user_id"] == str(owner.pk)
    olive.post(CONNECTIONS, {"account": account.pk})
    assert not SocialAccount.objects.exists()


def test_a_connected_account_is_named_as_its_user_knows_it(olive, provider):
    provider.person |= {"email": "nina@example.org"}
    come(olive, process="connect")
    assert "<b>nina@example.org</b>" in olive.get(CONNECTIONS).content.decode()


def test_a_user_without_a_password_stays_connected(client, provider, settings):
    settings.OIDC_SIGNUP = True
    come(client)
    account = SocialAccount.objects.get()
    answer = client.post(CONNECTIONS, {"account": account.pk})
    assert "Set a password first" in answer.content.decode()
    assert SocialAccount.objects.exists()


def test_groups_with_limits_follow_the_providers_claim(client, provider, settings, owner):
    settings.OIDC_GROUPS_CLAIM = "groups"
    interns, sales, local = (Group.objects.create(name=n) for n in ("interns", "sales", "local"))
    admins = Group.objects.create(name="admins")
    admins.permissions.add(Permission.objects.first())
    for group in (interns, sales, admins):
        SpendingLimit.objects.create(group=group, tokens_per_day=5)
    owner.groups.add(sales, local)
    known(owner)
    provider.person |= {"groups": ["interns", "admins", "local", "unknown", 7]}
    come(client)
    # `local` has no limit and `admins` gives permissions: both stay as they were.
    assert set(owner.groups.all()) == {interns, local}


def test_without_the_setting_no_group_changes(client, provider, settings, owner):
    interns = Group.objects.create(name="interns")
    SpendingLimit.objects.create(group=interns, tokens_per_day=5)
    known(owner)
    provider.person |= {"groups": ["interns"]}
    come(client)
    assert not owner.groups.exists()
