"""The page of API tokens: made and shown once, revoked."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from projects.models import Membership, Token
from projects.services import remove_member
from tests.html import compact

pytestmark = pytest.mark.django_db

URL = "/account/tokens/"
FORM = {"name": "Editor", "project": "", "scopes": ["read", "write"], "days": "90"}


@pytest.fixture
def olive(client, owner):
    client.force_login(owner)
    client.post("/accounts/confirm/", {"password": "pass-word-1"})
    return client


def secret_in(page: str) -> str:
    return re.search(r'<input value="(strata_[^"]+)" readonly', compact(page))[1]


def opens(secret: str) -> int:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client.get("/api/v1/projects/").status_code


def test_it_is_found_from_every_page(olive, project):
    for path in ("/", "/projects/billing/", "/projects/billing/settings/"):
        assert f'href="{URL}"' in olive.get(path).content.decode()


def test_an_anonymous_visitor_is_asked_to_sign_in(client):
    assert client.get(URL)["Location"].startswith("/accounts/login/")
    assert client.post(URL, FORM)["Location"].startswith("/accounts/login/")


def test_a_token_is_made_and_shown_this_once(olive, project):
    answer = olive.post(URL, FORM | {"project": "billing"})
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    secret = secret_in(answer.content.decode())
    token = Token.objects.get()
    assert (token.name, token.project, token.scopes) == ("Editor", project, ["read", "write"])
    left = token.expiry - timezone.now()
    assert timedelta(days=89, hours=23) < left <= timedelta(days=90)
    assert opens(secret) == 200
    page = olive.get(URL).content.decode()
    assert "Editor" in page
    assert secret not in page
    assert token.digest not in page


def test_the_password_is_asked_for_before_a_token_is_made(client, owner):
    client.force_login(owner)
    response = client.post(URL, FORM)
    assert response["Location"] == "/accounts/confirm/?next=%2Faccount%2Ftokens%2F"
    assert not Token.objects.exists()
    assert client.post(response["Location"], {"password": "wrong"}).status_code == 200
    assert not Token.objects.exists()
    # The request goes on after the password.
    answer = client.post(response["Location"], {"password": "pass-word-1"})
    assert opens(secret_in(answer.content.decode())) == 200
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("on", ["page", "api"])
def test_the_user_gets_a_mail(olive, owner, api, settings, mailoutbox, on):
    settings.SENDS_MAIL = settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    if on == "page":
        olive.post(URL, FORM)
    else:
        api(owner).post("/api/v1/tokens/", {"name": "Editor"}, format="json")
    [message] = mailoutbox
    assert message.to == ["olive@example.org"]
    assert "“Editor”" in message.body
    assert "strata_" not in message.body


def test_without_mail_no_message_is_sent(olive, mailoutbox):
    olive.post(URL, FORM)
    assert mailoutbox == []


def test_a_token_may_be_for_ever(olive):
    assert olive.post(URL, FORM | {"days": ""}).status_code == 200
    assert Token.objects.get().expiry is None


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"scopes": []}, {"scopes": ["fly"]}, {"days": "2"}, {"project": "x"}]
)
def test_invalid_values_are_reported_and_create_nothing(olive, wrong):
    answer = olive.post(URL, FORM | wrong)
    assert answer.status_code == 400
    assert 'class="error"' in answer.content.decode()
    assert not Token.objects.exists()


def test_a_project_of_others_is_no_choice(client, stranger, project):
    client.force_login(stranger)
    client.post("/accounts/confirm/", {"password": "pass-word-1"})
    assert "Billing" not in client.get(URL).content.decode()
    assert client.post(URL, FORM | {"project": "billing"}).status_code == 400


def test_who_left_a_project_does_not_read_its_name(olive, owner, editor, project):
    Membership.objects.filter(user=editor).update(role="owner")
    Token.issue(owner, name="Editor", project=project)
    assert "Billing · " in compact(olive.get(URL).content.decode())
    remove_member(Membership.objects.get(user=owner))
    project.name = "Layoffs"
    project.save()
    page = olive.get(URL).content.decode()
    assert "Layoffs" not in page
    assert "a project of which you are no longer a member · " in compact(page)


def test_a_revoked_token_opens_nothing(olive, owner):
    token, secret = Token.issue(owner, name="Editor")
    assert opens(secret) == 200
    answer = olive.post(f"{URL}{token.public_id}/revoke/", follow=True)
    assert "The token was revoked." in answer.content.decode()
    assert opens(secret) == 401


def test_nobody_sees_or_revokes_the_tokens_of_others(client, owner, stranger):
    token, _ = Token.issue(owner, name="Olive’s own")
    client.force_login(stranger)
    assert "Olive" not in client.get(URL).content.decode()
    assert client.post(f"{URL}{token.public_id}/revoke/").status_code == 404
    assert client.get(f"{URL}{token.public_id}/revoke/").status_code == 405
    assert Token.objects.exists()


def test_it_says_when_a_token_was_used_and_that_it_expired(olive, owner):
    now = timezone.now()
    used_at = now - timedelta(days=400)
    Token.issue(owner, name="Old", expiry=now - timedelta(days=1), last_used_at=used_at)
    page = olive.get(URL).content.decode()
    assert "expired on" in page
    assert re.search(rf"last used <time[^>]+>\d+ \w+ {used_at.year}, \d\d:\d\d</time>", page)


def test_it_takes_the_same_queries_for_many(olive, owner, project, django_assert_num_queries):
    olive.get(URL)
    for number in range(20):
        Token.issue(owner, name=f"Token {number}", project=project)
    with django_assert_num_queries(4):
        assert olive.get(URL).content.decode().count("Revoke Token") == 20


def test_a_token_without_a_name_has_one_name_everywhere(olive, owner, admin_client):
    Token.issue(owner)
    assert "Token of olive" in olive.get(URL).content.decode()
    assert "Token of olive" in admin_client.get("/admin/projects/token/").content.decode()
    german = {"Accept-Language": "de"}
    assert "Token von olive" in olive.get(URL, headers=german).content.decode()
