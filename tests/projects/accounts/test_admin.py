"""Accounts in the admin: browsers that are signed out, addresses that are replaced."""

import pytest
from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from lxml import html

pytestmark = pytest.mark.django_db

BROWSERS, ADDRESSES = "/admin/usersessions/usersession/", "/admin/account/emailaddress/"
PASSWORD = "/admin/password_change/"
OLD, NEW = "olive@example.org", "new@example.org"


def delete(client, row, path: str):
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    assert client.post(path.format(row.pk), chosen).status_code == 302


@pytest.mark.parametrize("path", [BROWSERS, f"{BROWSERS}{{}}/delete/"])
def test_a_browser_that_is_deleted_is_signed_out(admin_client, owner, olive, is_in, path):
    browser = UserSession.objects.get(user=owner)
    listed = admin_client.get(BROWSERS).content.decode()
    assert "olive" in listed and browser.session_key not in listed
    delete(admin_client, browser, path)
    assert not is_in(olive)
    assert not UserSession.objects.filter(user=owner).exists()


def test_the_admin_has_no_page_of_its_own_for_a_new_password(admin_client, admin_user):
    form = {"old_password": "password", "new_password1": NEW, "new_password2": NEW}
    for answer in (admin_client.get(PASSWORD), admin_client.post(PASSWORD, form)):
        assert answer["Location"] == "/accounts/password/"
    admin_user.refresh_from_db()
    assert admin_user.check_password("password")


@pytest.fixture
def address(owner) -> EmailAddress:
    return EmailAddress.objects.create(user=owner, email=OLD, primary=True, verified=True)


def asks_for_a_new_password(client, email: str) -> None:
    client.post("/accounts/password/forgotten/", {"email": email})


def test_a_replaced_address_neither_signs_in_nor_resets_the_password(
    admin_client, client, owner, address, mail, sign_in, is_in
):
    path = f"/admin/auth/user/{owner.pk}/change/"
    page = html.fromstring(admin_client.get(path).content.decode())
    form = dict(page.get_element_by_id("user_form").form_values())
    admin_client.post(path, form | {"email": NEW})
    asks_for_a_new_password(client, OLD)
    assert not mail and not is_in(sign_in(OLD)[0])
    asks_for_a_new_password(client, NEW)
    assert mail[0].to == [NEW] and is_in(sign_in(NEW)[0])


@pytest.mark.parametrize("path", [ADDRESSES, f"{ADDRESSES}{{}}/delete/"])
def test_a_deleted_address_does_not_reset_the_password(admin_client, client, address, mail, path):
    delete(admin_client, address, path)
    asks_for_a_new_password(client, OLD)
    assert not mail
