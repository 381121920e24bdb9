"""The browsers that somebody is signed in with: listed, and signed out."""

import re

import pytest
from allauth.usersessions.models import UserSession
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from projects import tasks

pytestmark = pytest.mark.django_db
SESSIONS = "/accounts/sessions/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def elsewhere(owner, sign_in) -> Client:
    """Another browser of hers."""
    browser = Client(headers={"User-Agent": FIREFOX})
    sign_in("olive", client=browser)
    return browser


def test_they_are_listed_with_what_they_are(olive, elsewhere):
    page = olive.get(SESSIONS).content.decode()
    assert "Firefox on Linux" in page
    assert "this browser" in page
    assert "127.0.0.1" in page


def test_one_of_them_is_signed_out_at_its_next_request(olive, elsewhere, is_in):
    assert is_in(elsewhere)
    path = re.search(r"/accounts/sessions/\d+/end/", olive.get(SESSIONS).content.decode())[0]
    assert "signed out" in olive.post(path, follow=True).content.decode()
    assert not is_in(elsewhere)
    assert is_in(olive)


def test_all_others_are_signed_out_at_once(olive, elsewhere, is_in):
    olive.post(SESSIONS)
    assert not is_in(elsewhere)
    assert is_in(olive)


def test_those_of_others_are_out_of_sight_and_reach(olive, stranger, sign_in, is_in):
    theirs, _answer = sign_in("stan", client=Client(headers={"User-Agent": FIREFOX}))
    assert "Firefox" not in olive.get(SESSIONS).content.decode()
    user_session = UserSession.objects.get(user=stranger)
    assert olive.post(f"{SESSIONS}{user_session.pk}/end/").status_code == 404
    assert is_in(theirs)


def test_a_session_from_before_is_listed_once_it_is_used(client, owner):
    client.force_login(owner)
    assert not UserSession.objects.exists()
    client.get("/")
    assert UserSession.objects.get().user == owner


def test_a_visit_is_noted_every_ten_minutes_and_costs_nothing_between(olive, monkeypatch):
    olive.get("/account/")
    before = UserSession.objects.get().last_seen_at
    with CaptureQueriesContext(connection) as captured:
        olive.get("/account/")
    assert not [query for query in captured if "UPDATE" in query["sql"]]
    assert UserSession.objects.get().last_seen_at == before
    now = __import__("time").time()
    monkeypatch.setattr("projects.accounts.browser_sessions.time.time", lambda: now + 601)
    olive.get("/account/")
    assert UserSession.objects.get().last_seen_at > before


def test_an_anonymous_visitor_leaves_no_session(client):
    client.get("/accounts/login/")
    assert not UserSession.objects.exists()


def test_ended_sessions_are_deleted(olive, elsewhere):
    from django.contrib.sessions.models import Session

    Session.objects.filter(session_key=elsewhere.session.session_key).update(
        expire_date="2020-01-01T00:00Z"
    )
    tasks.clear()
    assert UserSession.objects.get().session_key == olive.session.session_key


def test_removing_a_member_acts_at_the_next_request(sign_in, project, editor, owner):
    from projects.services import remove_member

    browser, _answer = sign_in("edgar")
    assert browser.get("/projects/billing/").status_code == 200
    remove_member(project.memberships.get(user=editor))
    assert browser.get("/projects/billing/").status_code == 404


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("Mozilla/5.0 (iPhone) AppleWebKit Version/18 Mobile Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (iPhone) AppleWebKit CriOS/140 Mobile Safari/604.1", "Chrome on iPhone"),
        ("Mozilla/5.0 (iPad) AppleWebKit FxiOS/140 Mobile Safari/605.1", "Firefox on iPad"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140 Safari/537.36 Edg/140", "Edge on Windows"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_in_words(agent, expected):
    from projects.templatetags.user_agents import browser

    assert browser(agent) == expected
