"""A forgotten password, a changed one, and the mail addresses that go with them."""

import re

import pytest
from allauth.account.models import EmailAddress

from projects.models import Token
from tests.projects.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db
FORGOTTEN, CHANGE, MAIL = "/accounts/password/forgotten/", "/accounts/password/", "/accounts/mail/"
NEW = "another-word-7"


def link_in(message, part: str) -> str:
    return re.search(rf"http://testserver(/accounts/{part}/\S+)", message.body)[1]


def test_without_mail_the_page_says_who_can_help(client, owner, mailoutbox):
    page = client.get(FORGOTTEN).content.decode()
    assert "does not send email" in page
    assert '<form method="post" class' not in page
    assert client.post(FORGOTTEN, {"email": "olive@example.org"})["Location"] == FORGOTTEN
    assert not mailoutbox


def test_a_link_comes_by_mail_and_works_once(client, owner, mail, sign_in, is_in):
    answer = client.post(FORGOTTEN, {"email": "olive@example.org"}, follow=True)
    assert "we sent it a link" in answer.content.decode()
    path = link_in(mail[0], "password/forgotten")
    form = client.get(path, follow=True)
    done = client.post(form.wsgi_request.path, {"password1": NEW, "password2": NEW}, follow=True)
    assert "Your password was set" in done.content.decode()
    assert is_in(sign_in("olive", NEW)[0])
    assert not is_in(sign_in("olive")[0])
    assert "already used" in client.get(path, follow=True).content.decode()


def test_a_new_password_signs_every_browser_out(client, owner, mail, olive, is_in):
    client.post(FORGOTTEN, {"email": "olive@example.org"})
    form = client.get(link_in(mail[0], "password/forgotten"), follow=True)
    client.post(form.wsgi_request.path, {"password1": NEW, "password2": NEW})
    assert not is_in(olive)


def test_an_unknown_address_gets_the_same_answer_and_no_mail(client, owner, mail):
    known = client.post(FORGOTTEN, {"email": "olive@example.org"})
    unknown = client.post(FORGOTTEN, {"email": "nobody@example.org"})
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
    assert [message.to for message in mail] == [["olive@example.org"]]


def test_five_links_a_minute_are_the_most(client, owner, mail):
    answers = [client.post(FORGOTTEN, {"email": "olive@example.org"}) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [302] * 5 + [429]
    assert len(mail) == 5


def test_a_failed_mail_is_reported(client, owner, mail, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    answer = client.post(FORGOTTEN, {"email": "olive@example.org"}, follow=True)
    assert "could not be sent" in answer.content.decode()
    assert answer.redirect_chain[-1][0] == FORGOTTEN


def test_a_password_is_changed_and_other_browsers_are_out(owner, olive, mail, sign_in, is_in):
    elsewhere, _answer = sign_in("olive")
    form = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert olive.post(CHANGE, form)["Location"] == "/account/"
    assert is_in(olive)
    assert not is_in(elsewhere)
    assert is_in(sign_in("olive", NEW)[0])


def test_the_mail_about_a_change_says_when_and_from_where(owner, olive, mail):
    form = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    language = {"Accept-Language": "de", "User-Agent": "Firefox"}
    olive.post(CHANGE, form, headers=language)
    body = mail[0].body
    assert body.startswith("Ihr Passwort wurde geändert.\n")
    assert "IP-Adresse: 127.0.0.1\nBrowser: Firefox\nZeit: " in body
    assert re.search(r"\d\d:\d\d UTC\n", body)


def test_the_present_password_is_asked_for(olive):
    form = {"oldpassword": "wrong", "password1": NEW, "password2": NEW}
    assert "current password is incorrect" in olive.post(CHANGE, form).content.decode()


def test_changing_it_is_limited(olive):
    form = {"oldpassword": "wrong", "password1": NEW, "password2": NEW}
    assert [olive.post(CHANGE, form).status_code for _ in range(6)] == [200] * 5 + [429]


def test_a_new_password_revokes_the_tokens_that_are_not_kept(owner, olive, api):
    kept_client, revoked = api(owner, name="kept"), api(owner, name="lost")
    assert "kept" in olive.get(CHANGE).content.decode()
    form = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    olive.post(CHANGE, form | {"kept_tokens": [str(Token.objects.get(name="kept").public_id)]})
    assert kept_client.get("/api/v1/projects/").status_code == 200
    assert revoked.get("/api/v1/projects/").status_code == 401
    olive.post(CHANGE, form | {"oldpassword": NEW, "password1": PASSWORD, "password2": PASSWORD})
    assert kept_client.get("/api/v1/projects/").status_code == 401


def test_a_refused_password_revokes_nothing(owner, olive, api):
    program = api(owner)
    olive.post(CHANGE, {"oldpassword": "wrong", "password1": NEW, "password2": NEW})
    assert program.get("/api/v1/projects/").status_code == 200


@pytest.mark.parametrize("keep", [True, False])
def test_a_reset_revokes_the_tokens_that_are_not_kept(client, owner, stranger, mail, api, keep):
    program, others = api(owner, name="mine"), api(stranger)
    client.post(FORGOTTEN, {"email": "olive@example.org"})
    form = client.get(link_in(mail[0], "password/forgotten"), follow=True)
    assert "mine" in form.content.decode()
    fields = {"password1": NEW, "password2": NEW}
    if keep:
        fields["kept_tokens"] = str(Token.objects.get(name="mine").public_id)
    client.post(form.wsgi_request.path, fields)
    assert program.get("/api/v1/projects/").status_code == (200 if keep else 401)
    assert others.get("/api/v1/projects/").status_code == 200


def test_nobody_keeps_the_token_of_another(owner, stranger, olive, api):
    api(owner)
    token, _secret = Token.issue(stranger)
    form = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    olive.post(CHANGE, form | {"kept_tokens": str(token.public_id)})
    assert Token.objects.filter(user=stranger).exists()


def test_a_new_address_is_confirmed_by_mail_and_lets_in(olive, mail, sign_in, is_in):
    answer = olive.post(MAIL, {"email": "o@example.net", "action_add": "1"}, follow=True)
    assert "o@example.net" in answer.content.decode()
    path = link_in(mail[-1], "mail")
    assert not EmailAddress.objects.get(email="o@example.net").verified
    olive.get(path)
    assert not EmailAddress.objects.get(email="o@example.net").verified
    olive.post(path)
    assert EmailAddress.objects.get(email="o@example.net").verified
    assert is_in(sign_in("o@example.net")[0])
    assert "already used" in olive.get(path).content.decode()


def test_an_address_is_not_changed_before_the_password_is_shown_again(owner, sign_in, mail):
    browser, _answer = sign_in("olive")
    answer = browser.post(MAIL, {"email": "o@example.net", "action_add": "1"})
    assert answer["Location"].startswith("/accounts/confirm/")
    assert not EmailAddress.objects.filter(email="o@example.net").exists()


def test_without_mail_no_address_is_added(olive):
    assert "does not send email" in olive.get(MAIL).content.decode()
    olive.post(MAIL, {"email": "o@example.net", "action_add": "1"})
    assert not EmailAddress.objects.filter(email="o@example.net").exists()


def test_the_main_address_is_chosen_and_others_removed(owner, olive, mail):
    EmailAddress.objects.create(user=owner, email="o@example.net", verified=True)
    olive.post(MAIL, {"email": "o@example.net", "action_primary": "1"})
    owner.refresh_from_db()
    assert owner.email == "o@example.net"
    olive.post(MAIL, {"email": "olive@example.org", "action_remove": "1"})
    assert [item.email for item in EmailAddress.objects.filter(user=owner)] == ["o@example.net"]


def test_a_user_without_a_password_sets_one(client, django_user_model, sign_in, is_in):
    client.force_login(django_user_model.objects.create_user("robot"))
    assert client.get(CHANGE)["Location"] == "/accounts/password/set/"
    client.post("/accounts/password/set/", {"password1": NEW, "password2": NEW})
    assert is_in(sign_in("robot", NEW)[0])
