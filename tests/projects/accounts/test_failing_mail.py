"""A mail server that is down or slow keeps nobody from what the mail is about."""

import pytest
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection

from projects.models import Token

pytestmark = pytest.mark.django_db
PASSWORDS = {"password1": "another-word-7", "password2": "another-word-7"}
# The domain of this address is valid, but too long once it is encoded for mail.
LONG = f"nina@{'ü' * 60}.example"


@pytest.fixture
def depths(mail, monkeypatch) -> list[int]:
    """A mail server that is down. The list gets the open savepoints at each attempt."""
    found = []

    def refuse(*args: object) -> None:
        found.append(len(connection.savepoint_ids))
        raise ConnectionRefusedError

    monkeypatch.setattr(EmailBackend, "send_messages", refuse)
    return found


def test_a_completed_change_is_not_reported_as_failed(olive, depths):
    form = {"oldpassword": "pass-word-1"} | PASSWORDS
    page = olive.post("/accounts/password/", form, follow=True).content.decode()
    assert "Your password was changed." in page
    page += olive.post("/account/tokens/", {"name": "Editor", "scopes": ["read"]}).content.decode()
    assert len(depths) == 2 and Token.objects.exists()
    assert "could not be sent" not in page


def test_a_program_gets_its_token_and_no_cookie(api, owner, depths):
    for key in ({}, {"Idempotency-Key": "one"}):
        answer = api(owner).post("/api/v1/tokens/", {}, format="json", headers=key)
        assert answer.status_code == 201 and answer.json()["token"]
        assert not answer.cookies


def test_no_transaction_waits_for_the_mail_server(api, owner, depths):
    for key in ({}, {"Idempotency-Key": "one"}):
        api(owner).post("/api/v1/tokens/", {}, format="json", headers=key)
    assert depths == [0, 0]


def test_an_address_that_cannot_be_encoded_is_reported(client, mail, settings, is_in):
    settings.SIGNUP_OPEN = True
    form = {"username": "nina", "email": LONG} | PASSWORDS
    page = client.post("/accounts/signup/", form, follow=True).content.decode()
    assert "could not be sent" in page
    assert is_in(client)
    answer = client.post("/accounts/password/forgotten/", {"email": LONG}, follow=True)
    assert "could not be sent" in answer.content.decode()
