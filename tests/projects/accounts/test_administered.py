"""What an administrator changes in an account: its email address and its username."""

import pytest
from allauth.account.models import EmailAddress
from django.http import HttpResponse
from django.urls import reverse

pytestmark = pytest.mark.django_db


def change_account(admin_client, user, **changes) -> HttpResponse:
    """Save the page of `user` in the admin with these `changes`, and return the answer."""
    url = reverse("admin:auth_user_change", args=[user.pk])
    initial = admin_client.get(url).context["adminform"].form.initial
    names = ("username", "first_name", "last_name", "email", "is_active")
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    return admin_client.post(url, {name: initial[name] for name in names} | joined | changes)


def test_a_new_email_in_the_admin_replaces_the_former_one(admin_client, owner, client, mail):
    for email, is_primary in (("olive@old.example", True), ("olive@home.example", False)):
        EmailAddress.objects.create(user=owner, email=email, primary=is_primary, verified=True)
    owner.email = "olive@old.example"
    owner.save()
    change_account(admin_client, owner, email="Olive@New.example")
    for email in ("olive@old.example", "olive@new.example"):
        client.post("/accounts/password/forgotten/", {"email": email})
    assert [message.to for message in mail] == [["olive@new.example"]]
    assert not client.login(username="olive@old.example", password="pass-word-1")
    addresses = EmailAddress.objects.filter(user=owner).order_by("-primary")
    assert [*addresses.values_list("email", "primary", "verified")] == [
        ("olive@new.example", True, False),
        ("olive@home.example", False, True),
    ]
    change_account(admin_client, owner, email="olive@home.example")
    assert addresses.get().verified
    change_account(admin_client, owner, email="")
    assert not addresses.exists()


def test_no_two_usernames_differ_only_in_their_case(admin_client, owner, editor, sign_in, is_in):
    """Neither of the two users could sign in."""
    answer = change_account(admin_client, editor, username="OLIVE")
    assert "A user with that username already exists." in answer.content.decode()
    browser, _answer = sign_in("Olive")
    assert is_in(browser)
    change_account(admin_client, editor, username="Edgar")
    browser, _answer = sign_in("edgar")
    assert is_in(browser)
