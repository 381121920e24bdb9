"""Links that leave the server begin with STRATA_URL, whatever host the request names."""

import re

import pytest
from django.test import RequestFactory

from projects.core.http.public_url import absolute_url

pytestmark = pytest.mark.django_db

PUBLIC = "https://strata.example.org"
FORGED = {"HTTP_HOST": "localhost:6666"}


@pytest.fixture(autouse=True)
def public(settings) -> None:
    settings.URL = PUBLIC
    settings.ALLOWED_HOSTS = ["strata.example.org", "localhost"]


def test_an_invitation_by_page_and_api(client, api, owner, project):
    client.force_login(owner)
    form = {"role": "viewer", "days": "7", "max_uses": "3", "action": "make"}
    page = client.post("/projects/billing/invitations/", form, **FORGED).content.decode()
    assert f'value="{PUBLIC}/join/billing/' in page
    response = api(owner).post("/api/v1/projects/billing/invitations/", {}, "json", **FORGED)
    assert response.json()["link"].startswith(f"{PUBLIC}/join/billing/")


def test_a_forgotten_password(client, owner, settings, mailoutbox):
    settings.SENDS_MAIL = True
    client.post("/accounts/password/forgotten/", {"email": "olive@example.org"}, **FORGED)
    [message] = mailoutbox
    assert re.search(rf"{PUBLIC}/accounts/password/forgotten/\S+", message.body)
    assert "localhost" not in message.body


def test_the_pages_of_the_api(api, owner, project, person):
    for number in range(2):
        project.memberships.create(user=person(f"guest{number}"))
    url = "/api/v1/projects/billing/members/?page_size=1"
    following = api(owner).get(url, **FORGED).json()["next"]
    assert following.startswith(f"{PUBLIC}/api/v1/projects/billing/members/?")


@pytest.mark.parametrize(
    ("location", "absolute"),
    [
        ("/a/?b=1", f"{PUBLIC}/a/?b=1"),
        (None, f"{PUBLIC}/here/?x=1"),
        ("", f"{PUBLIC}/here/"),
        ("https://elsewhere.example/", "https://elsewhere.example/"),
    ],
)
def test_an_absolute_url(location, absolute):
    request = RequestFactory().get("/here/?x=1", **FORGED)
    assert absolute_url(request, location) == absolute


def test_without_it_the_host_must_be_allowed(client, owner, settings, mailoutbox):
    settings.URL, settings.SENDS_MAIL = "", True
    forgotten, form = "/accounts/password/forgotten/", {"email": "olive@example.org"}
    assert client.post(forgotten, form, HTTP_HOST="evil.example").status_code == 400
    assert mailoutbox == []
    client.post(forgotten, form, HTTP_HOST="localhost")
    assert "http://localhost/accounts/" in mailoutbox[0].body


def test_mcp(owner, project):
    from memory.api.mcp import server
    from projects.models import Token

    _token, secret = Token.issue(owner, project=project)
    headers = [(b"host", b"localhost:6666"), (b"authorization", f"Bearer {secret}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b""}
    caller = server._authenticate(scope | {"headers": headers})
    assert caller.absolute("/projects/") == f"{PUBLIC}/projects/"
