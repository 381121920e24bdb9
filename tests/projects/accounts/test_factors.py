"""Second factors: an app with codes, recovery codes, and what is kept of them."""

import re
import time
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client

pytestmark = pytest.mark.django_db
SECRET = "JBSWY3DPEHPK3PXP"
ASKED = "/accounts/factors/authenticate/"


def code_of(secret: str, ago: int = 0) -> str:
    """What an app shows, or showed so many half minutes ago."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 - ago))


@pytest.fixture
def app(owner) -> TOTP:
    return TOTP.activate(owner, SECRET)


@pytest.fixture
def codes(owner, app) -> list[str]:
    return RecoveryCodes.activate(owner).generate_codes()


@pytest.fixture
def half_in(app, sign_in) -> Client:
    """A browser that has shown the password, and no more."""
    return sign_in("olive")[0]


def test_an_app_is_set_up_by_its_first_code_and_recovery_codes_come_with_it(olive, owner, is_in):
    page = olive.get("/accounts/factors/app/").content.decode()
    assert "data:image/svg+xml;base64," in page
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page)[1]
    answer = olive.post("/accounts/factors/app/", {"code": code_of(secret)}, follow=True)
    assert answer.redirect_chain[-1][0] == "/accounts/factors/codes/"
    codes = re.findall(r"<code>(\d{8})</code>", answer.content.decode())
    assert len(codes) == 10
    assert olive.get("/accounts/factors/codes/file/").content.decode().split() == codes
    assert {authenticator.type for authenticator in Authenticator.objects.filter(user=owner)} == {
        "totp",
        "recovery_codes",
    }


def test_a_wrong_first_code_sets_nothing_up(olive):
    olive.get("/accounts/factors/app/")
    answer = olive.post("/accounts/factors/app/", {"code": "000000"})
    assert "This code is incorrect" in answer.content.decode()
    assert not Authenticator.objects.exists()


def test_the_password_is_shown_again_before_an_app_is_set_up(owner, sign_in):
    browser, _answer = sign_in("olive")
    answer = browser.get("/accounts/factors/app/")
    assert answer["Location"].startswith("/accounts/confirm/")


def test_the_password_alone_is_half_the_way(half_in, is_in):
    assert not is_in(half_in)
    assert half_in.get("/admin/")["Location"].startswith("/admin/login/")
    assert half_in.post(ASKED, {"code": code_of(SECRET)})["Location"] == "/"
    assert is_in(half_in)


def test_the_way_goes_on_to_where_it_led(app, sign_in):
    browser, _answer = sign_in("olive", next="/account/tokens/")
    assert browser.post(ASKED, {"code": code_of(SECRET)})["Location"] == "/account/tokens/"


def test_a_code_works_once(half_in, sign_in, is_in):
    code = code_of(SECRET)
    half_in.post(ASKED, {"code": code})
    other, _answer = sign_in("olive")
    assert "already used" in other.post(ASKED, {"code": code}).content.decode()
    assert not is_in(other)


def test_a_clock_may_be_half_a_minute_behind_and_not_more(half_in, is_in):
    half_in.post(ASKED, {"code": code_of(SECRET, ago=3)})
    assert not is_in(half_in)
    half_in.post(ASKED, {"code": code_of(SECRET, ago=1)})
    assert is_in(half_in)


def test_guessing_codes_is_limited_in_whatever_browser(half_in, sign_in, is_in):
    for _ in range(5):
        half_in.post(ASKED, {"code": "000000"})
    other, _answer = sign_in("olive")
    answer = other.post(ASKED, {"code": code_of(SECRET)})
    assert "Too many attempts" in answer.content.decode()
    assert not is_in(other)


def test_a_recovery_code_lets_in_once(codes, half_in, sign_in, is_in):
    half_in.post(ASKED, {"code": codes[0]})
    assert is_in(half_in)
    other, _answer = sign_in("olive")
    other.post(ASKED, {"code": codes[0]})
    assert not is_in(other)
    other.post(ASKED, {"code": codes[1]})
    assert is_in(other)


def test_new_recovery_codes_put_the_old_ones_out_of_use(
    codes, reauthenticated_client, sign_in, is_in
):
    reauthenticated_client.post("/accounts/factors/codes/new/")
    cache.clear()
    other, _answer = sign_in("olive")
    other.post(ASKED, {"code": codes[0]})
    assert not is_in(other)


@pytest.fixture
def reauthenticated_client(half_in) -> Client:
    """Her browser, after the code, which has just shown the password once more."""
    half_in.post(ASKED, {"code": code_of(SECRET)})
    half_in.post("/accounts/confirm/", {"password": "pass-word-1"})
    return half_in


def test_an_app_is_removed_and_its_recovery_codes_go_along(
    reauthenticated_client, codes, sign_in, is_in
):
    reauthenticated_client.post("/accounts/factors/app/remove/")
    assert not Authenticator.objects.exists()
    assert is_in(sign_in("olive")[0])


def test_the_database_holds_no_secret_that_makes_codes(app, codes):
    stored_data = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert SECRET not in stored_data
    assert not any(code in stored_data for code in codes)


def test_under_another_key_of_the_server_no_code_is_right(half_in, codes, settings, is_in):
    settings.SECRET_KEY = "another"
    # Its own session would be over as well.
    totp = Authenticator.objects.get(type="totp").wrap()
    recovery = Authenticator.objects.get(type="recovery_codes").wrap()
    assert not totp.validate_code(code_of(SECRET))
    assert not totp.validate_code(format_hotp_value(hotp_value("", int(time.time()) // 30)))
    assert not recovery.validate_code(codes[0])


def test_the_key_before_still_reads_them(app, settings):
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert Authenticator.objects.get().wrap().validate_code(code_of(SECRET))


def test_an_operator_removes_lost_factors(codes, sign_in, is_in):
    out = StringIO()
    call_command("remove_factors", "olive", stdout=out)
    assert "Removed 2" in out.getvalue()
    assert is_in(sign_in("olive")[0])
    with pytest.raises(CommandError, match="has no second factor"):
        call_command("remove_factors", "olive")
    with pytest.raises(CommandError, match="There is no user"):
        call_command("remove_factors", "nobody")


def test_a_change_of_factors_is_reported_by_mail(olive, owner, mail):
    page = olive.get("/accounts/factors/app/").content.decode()
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page)[1]
    olive.post("/accounts/factors/app/", {"code": code_of(secret)})
    assert not mail  # No address of hers is confirmed, or the main one.
    owner.emailaddress_set.update_or_create(
        email="olive@example.org", defaults={"verified": True, "primary": True}
    )
    olive.post("/accounts/factors/codes/new/")


def test_programs_need_no_second_factor(owner, app, api):
    assert api(owner).get("/api/v1/projects/").status_code == 200
