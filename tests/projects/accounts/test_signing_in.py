"""Sign in with a name or address and a password; repeated failures are throttled."""

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db
SIGN_IN = "/accounts/login/"


def test_it_takes_the_name(owner, sign_in, is_in):
    browser, answer = sign_in("olive")
    assert answer["Location"] == "/"
    assert is_in(browser)


def test_it_takes_the_mail_address_in_any_case(owner, sign_in, is_in):
    browser, _answer = sign_in("Olive@Example.org")
    assert is_in(browser)


def test_it_takes_the_field_that_scripts_filled_in_before(client, owner, is_in):
    form = {"username": "olive", "password": "pass-word-1", "next": "/account/"}
    assert client.post(SIGN_IN, form)["Location"] == "/account/"
    assert is_in(client)


def test_it_leads_nowhere_else(owner, sign_in):
    _browser, answer = sign_in("olive", next="https://evil.example/")
    assert answer["Location"] == "/"


@pytest.mark.parametrize("login", ["olive", "olive@example.org", "nobody", "nobody@example.org"])
def test_a_wrong_password_does_not_reveal_whether_the_user_exists(owner, sign_in, is_in, login):
    browser, answer = sign_in(login, "wrong")
    assert "or password is incorrect" in answer.content.decode()
    assert not is_in(browser)


def test_after_five_wrong_passwords_the_right_one_has_to_wait(owner, sign_in, is_in):
    for _ in range(5):
        sign_in("olive", "wrong")
    browser, answer = sign_in("olive")
    assert "Too many attempts" in answer.content.decode()
    assert not is_in(browser)


def test_attempts_with_other_hosts_and_ports_count_for_the_same_person(client, owner, settings):
    settings.ALLOWED_HOSTS = ["localhost", "strata.internal"]
    hosts = ["localhost", "localhost:1", "LOCALHOST:2", "strata.internal", "strata.internal:4"]
    for host in hosts:
        client.post(SIGN_IN, {"login": "Olive", "password": "wrong"}, headers={"Host": host})
    form = {"login": "olive", "password": "pass-word-1"}
    answer = client.post(SIGN_IN, form, headers={"Host": "localhost:5"})
    assert "Too many attempts" in answer.content.decode()


def test_others_do_not_wait_with_them(owner, stranger, sign_in, is_in):
    for _ in range(5):
        sign_in("olive", "wrong")
    browser, _answer = sign_in("stan")
    assert is_in(browser)


def test_ten_wrong_passwords_for_many_names_shut_out_an_address(owner, sign_in):
    for number in range(10):
        sign_in(f"name{number}", "wrong")
    _browser, answer = sign_in("olive")
    assert "Too many attempts" in answer.content.decode()


@pytest.mark.parametrize(("proxies", "shut_out"), [(0, True), (1, False)])
def test_an_address_is_that_which_trusted_proxies_tell(client, owner, settings, proxies, shut_out):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    for number in range(11):
        client.post(
            SIGN_IN,
            {"login": f"name{number}", "password": "wrong"},
            headers={"X-Forwarded-For": f"203.0.113.{number}"},
        )
    answer = client.post(
        SIGN_IN,
        {"login": "olive", "password": "pass-word-1"},
        headers={"X-Forwarded-For": "203.0.113.99"},
    )
    assert ("Too many attempts" in answer.content.decode()) is shut_out


def test_a_request_through_a_socket_is_from_this_machine(client, owner, is_in):
    form = {"login": "olive", "password": "pass-word-1"}
    client.post(SIGN_IN, form, REMOTE_ADDR="")
    assert is_in(client)


def test_at_most_thirty_attempts_a_minute_from_one_address(client, owner):
    answers = [client.post(SIGN_IN, {"login": "", "password": ""}) for _ in range(31)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429]
    assert "Too many requests" in answers[-1].content.decode()


def test_every_process_counts_the_same_attempts(owner, sign_in):
    """Another process reads the counts from the database, where the cache of this one is gone."""
    for _ in range(5):
        sign_in("olive", "wrong")
    with connection.cursor() as cursor:
        cursor.execute("SELECT cache_key FROM projects_cache")
        keys = [key for [key] in cursor.fetchall()]
    assert any("login_failed" in key for key in keys), keys


def test_a_deactivated_user_is_informed(owner, sign_in):
    owner.is_active = False
    owner.save()
    browser, answer = sign_in("olive")
    assert "deactivated" in browser.get(answer["Location"]).content.decode()


def test_a_deactivated_user_is_signed_out_at_the_next_request(owner, olive, is_in):
    assert is_in(olive)
    owner.is_active = False
    owner.save()
    assert not is_in(olive)


def test_signing_out_takes_a_post(olive, is_in):
    assert olive.get("/accounts/logout/").status_code == 200
    assert is_in(olive)
    assert olive.post("/accounts/logout/")["Location"] == SIGN_IN
    assert not is_in(olive)


def test_the_admin_has_no_door_of_its_own(client, admin_user):
    answer = client.post("/admin/login/?next=/admin/", {"username": "admin", "password": "x"})
    assert answer["Location"] == f"{SIGN_IN}?next=%2Fadmin%2F"
    assert "/admin/login/" in client.get("/admin/")["Location"]


def test_a_user_without_a_password_does_not_get_in(django_user_model, sign_in, is_in):
    django_user_model.objects.create_user("robot")
    browser, _answer = sign_in("robot", "")
    assert not is_in(browser)


def test_nobody_makes_an_account_uninvited(client, django_user_model):
    form = {"username": "new", "password1": "a-long-word-7", "password2": "a-long-word-7"}
    assert "need an invitation" in client.get("/accounts/signup/").content.decode()
    assert "need an invitation" in client.post("/accounts/signup/", form).content.decode()
    assert not django_user_model.objects.exists()


def test_everybody_does_where_the_server_is_open(client, settings, is_in):
    settings.SIGNUP_OPEN = True
    assert "/accounts/signup/" in client.get(SIGN_IN).content.decode()
    form = {"username": "new", "password1": "a-long-word-7", "password2": "a-long-word-7"}
    assert client.post("/accounts/signup/", form)["Location"] == "/"
    assert is_in(client)


def test_a_weak_password_makes_no_account(client, settings, django_user_model):
    settings.SIGNUP_OPEN = True
    form = {"username": "new", "password1": "new", "password2": "new"}
    assert 'class="error"' in client.post("/accounts/signup/", form).content.decode()
    assert not django_user_model.objects.exists()


def test_pages_hold_no_code_and_no_style(client, settings, olive):
    settings.SIGNUP_OPEN = True
    paths = ("login", "signup", "password/forgotten", "mail", "password", "factors", "passkeys")
    paths += ("factors/app", "passkeys/add", "sessions", "provider")
    for path in paths:
        for browser in (client, olive):
            page = browser.get(f"/accounts/{path}/", follow=True).content.decode()
            assert "style=" not in page
            assert "onclick" not in page
            assert "<script>" not in page
