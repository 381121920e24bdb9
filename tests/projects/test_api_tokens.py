"""/api/v1/tokens/: made, listed and revoked; none can do more than the one that made it."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from projects.models import Token
from projects.services import create_project

pytestmark = pytest.mark.django_db

URL = "/api/v1/tokens/"


@pytest.fixture
def make(api, owner):
    """Asks for a token with one of the owner's; keywords of `by` are that one's."""

    def post(body: dict, **by):
        return api(owner, **by).post(URL, body, format="json")

    return post


def bearing(token: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def test_it_is_shown_once_and_opens_the_api(make, api, owner, project):
    answer = make({"name": "Editor", "scopes": ["read"]})
    assert answer.status_code == 201
    payload = answer.json()
    assert payload["token"].startswith("strata_")
    assert (payload["name"], payload["scopes"], payload["project"]) == ("Editor", ["read"], None)
    assert bearing(payload["token"]).get("/api/v1/projects/billing/").status_code == 200
    listed = api(owner).get(URL).json()["results"]
    assert payload["id"] in {row["id"] for row in listed}
    body = api(owner).get(f"{URL}{payload['id']}/").json()
    assert "token" not in body
    assert payload["token"] not in str(listed)
    assert payload["token"] not in str(list(Token.objects.values()))


@pytest.mark.parametrize("field", ["scope", "expires", "token"])
def test_a_misspelled_limit_makes_no_token(make, field):
    answer = make({field: ["read"]})
    assert answer.status_code == 400
    assert answer.json() == {field: ["There is no such field."]}
    # The token of the request.
    assert Token.objects.count() == 1


def test_a_token_can_have_a_project_scopes_and_an_expiry(make, project):
    until = timezone.now() + timedelta(days=3)
    payload = make({}, project=project, scopes=["read", "admin"], expiry=until).json()
    token = Token.objects.get(public_id=payload["id"])
    assert (token.project, token.scopes, token.expiry) == (project, ["read", "admin"], until)


def test_it_can_do_no_more(make, owner, project):
    create_project(owner, name="Support", slug="support")
    until = timezone.now() + timedelta(days=3)
    limits = {"project": project, "scopes": ["read", "admin"], "expiry": until}
    for body, field in (
        ({"scopes": ["write"]}, "scopes"),
        ({"project": None}, "project"),
        ({"project": "support"}, "project"),
        ({"expires_at": None}, "expires_at"),
        ({"expires_at": (until + timedelta(seconds=1)).isoformat()}, "expires_at"),
    ):
        answer = make(body, **limits)
        assert (answer.status_code, set(answer.json())) == (400, {field}), body
    assert Token.objects.count() == 5


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["fly"]}, "scopes"),
        ({"project": "nowhere"}, "project"),
        ({"project": "nul\0"}, "project"),
        ({"project": ["billing"]}, "project"),
        ({"expires_at": "2001-01-01T00:00Z"}, "expires_at"),
        ({"name": "a" * 121}, "name"),
    ],
)
def test_an_invalid_value_names_the_field(make, body, field):
    answer = make(body)
    assert (answer.status_code, set(answer.json())) == (400, {field})


def test_a_project_of_others_is_not_there(api, stranger, project):
    answer = api(stranger).post(URL, {"project": "billing"}, format="json")
    assert (answer.status_code, set(answer.json())) == (400, {"project"})


def test_it_takes_the_scope_admin_also_to_read(api, owner):
    client = api(owner, scopes=["read", "write"])
    assert client.get(URL).status_code == 403
    assert client.post(URL, {}, format="json").status_code == 403
    assert client.delete(f"{URL}{Token.objects.get().public_id}/").status_code == 403


def test_nobody_sees_or_revokes_the_tokens_of_others(api, owner, stranger):
    client = api(stranger)
    mine, _ = Token.issue(owner)
    assert client.get(f"{URL}{mine.public_id}/").status_code == 404
    assert client.delete(f"{URL}{mine.public_id}/").status_code == 404
    assert len(client.get(URL).json()["results"]) == 1


def test_a_token_for_one_project_knows_only_those_for_it(api, owner, project):
    other, _ = Token.issue(owner, name="all")
    client = api(owner, project=project, name="one")
    assert [result["name"] for result in client.get(URL).json()["results"]] == ["one"]
    assert client.delete(f"{URL}{other.public_id}/").status_code == 404


def test_a_revoked_token_is_refused_at_its_next_request(make, api, owner):
    payload = make({}).json()
    client = bearing(payload["token"])
    assert client.get(URL).status_code == 200
    assert api(owner).delete(f"{URL}{payload['id']}/").status_code == 204
    assert client.get(URL).status_code == 401


def test_a_token_may_revoke_itself(api, owner):
    client = api(owner)
    assert client.delete(f"{URL}{Token.objects.get().public_id}/").status_code == 204
    assert client.get(URL).status_code == 401


def test_a_repeated_response_lacks_the_token(api, owner):
    client, key = api(owner), {"HTTP_IDEMPOTENCY_KEY": "one"}
    first = client.post(URL, {"name": "Editor"}, format="json", **key).json()
    response = client.post(URL, {"name": "Editor"}, format="json", **key)
    assert response.status_code == 201
    assert response.json() == first | {"token": None}
    assert Token.objects.filter(name="Editor").count() == 1


def test_a_page_leads_to_the_next(api, owner):
    for number in range(4):
        Token.issue(owner, name=f"Token {number}")
    client = api(owner, name="asking")
    first = client.get(URL, {"page_size": 2}).json()
    second = client.get(first["next"]).json()
    assert [result["name"] for result in first["results"]] == ["asking", "Token 3"]
    assert [result["name"] for result in second["results"]] == ["Token 2", "Token 1"]
    assert client.get(URL, {"cursor": "cD1hYmM="}).status_code == 404


def test_its_last_use_is_written_once_a_minute(owner, project, django_assert_num_queries):
    token, secret = Token.issue(owner)
    client, url = bearing(secret), "/api/v1/projects/"
    began = timezone.now()
    client.get(url)
    noted = Token.objects.get().last_used_at
    assert noted >= began
    with django_assert_num_queries(2):
        client.get(url)
    assert Token.objects.get().last_used_at == noted
    Token.objects.update(last_used_at=noted - timedelta(seconds=61))
    client.get(url)
    assert Token.objects.get().last_used_at >= noted


@pytest.mark.parametrize("token", ["strata_nothing", "strata_\xe4", "\xff\xfe", "x" * 5000])
def test_an_invalid_token_is_refused(token, project):
    answer = bearing(token).get("/api/v1/projects/")
    assert answer.status_code == 401
    assert answer.json() == {"detail": "Invalid token."}


def test_tokens_are_known_outside_by_their_public_id(owner):
    token, _ = Token.issue(owner)
    assert isinstance(token.public_id, UUID)
    assert str(token.public_id) not in token.digest
