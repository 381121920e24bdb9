"""/api/v1/projects/: who sees, makes, changes and deletes a project."""

import pytest

from memory.layers import ladder
from projects import services
from projects.models import Membership, Project
from projects.services import create_project

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/"
ONE = "/api/v1/projects/billing/"


def test_a_member_sees_their_projects_newest_first(api, owner, project):
    create_project(owner, name="Support", slug="support")
    answer = api(owner).get(URL).json()
    assert list(answer) == ["next", "previous", "results"]
    assert [result["slug"] for result in answer["results"]] == ["support", "billing"]


def test_a_stranger_sees_none_and_gets_404_for_one(api, stranger, project):
    client = api(stranger)
    assert client.get(URL).json()["results"] == []
    assert client.get(ONE).status_code == 404
    assert client.patch(ONE, {"name": "Mine"}, format="json").status_code == 404
    assert client.delete(ONE).status_code == 404


def test_without_a_token_it_gets_401(client, project):
    answer = client.get(URL)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "detail" in answer.json()


def test_a_page_leads_to_the_next_and_back(api, owner):
    for number in range(5):
        create_project(owner, name=f"Project {number}")
    client = api(owner)
    first = client.get(URL, {"page_size": 2}).json()
    second = client.get(first["next"]).json()
    assert [result["name"] for result in second["results"]] == ["Project 2", "Project 1"]
    assert client.get(second["previous"]).json()["results"] == first["results"]


@pytest.mark.parametrize("cursor", ["nonsense", "cD1hYmM=", "cD0lMDA="])
def test_a_mangled_cursor_is_not_found(api, owner, project, cursor):
    assert api(owner).get(URL, {"cursor": cursor}).status_code == 404


def test_listing_takes_the_same_queries_for_many(api, owner, django_assert_num_queries):
    client = api(owner)
    for number in range(20):
        create_project(owner, name=f"Project {number}")
    with django_assert_num_queries(2):
        assert len(client.get(URL).json()["results"]) == 20


def test_requests_at_once_for_one_name_get_projects_of_their_own(owner, project, monkeypatch):
    slugs = iter(["billing", "billing-2"])
    monkeypatch.setattr(services, "unused_slug", lambda name: next(slugs))
    assert create_project(owner, name="Billing").slug == "billing-2"
    with pytest.raises(services.SlugTakenError):
        create_project(owner, name="Billing", slug="billing")


def test_the_creator_of_a_project_owns_it(api, stranger):
    answer = api(stranger).post(URL, {"name": "Data Platform"}, format="json")
    assert answer.status_code == 201
    assert answer.json()["slug"] == "data-platform"
    assert answer.json()["bank_max_tokens"] == 2000
    assert Membership.objects.get(project__slug="data-platform").user == stranger


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "name"),
        ({"name": "X", "slug": "billing"}, "slug"),
        ({"name": "X", "slug": "no spaces"}, "slug"),
        ({"name": "X", "timezone": "Mars/Olympus"}, "timezone"),
        # Python knows it, but the database does not.
        ({"name": "X", "timezone": "localtime"}, "timezone"),
        ({"name": "X", "chat_model": "gpt"}, "chat_model"),
        ({"name": "X", "system_model": "openai:"}, "system_model"),
        ({"name": "X", "bank_max_tokens": 99}, "bank_max_tokens"),
        ({"name": "X", "history_limit": 49}, "history_limit"),
        ({"name": "X", "idle_minutes": 0}, "idle_minutes"),
        ({"name": "X\0"}, "name"),
    ],
)
def test_invalid_fields_of_a_project_are_refused_by_name(api, owner, project, fields, field):
    answer = api(owner).post(URL, fields, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == [field]
    assert isinstance(answer.json()[field], list)
    assert Project.objects.count() == 1


def test_owners_change_a_project(api, owner, project):
    answer = api(owner).patch(
        ONE, {"idle_minutes": 5, "timezone": "Europe/Berlin", "slug": "billing"}, format="json"
    )
    assert answer.status_code == 200
    project.refresh_from_db()
    assert (project.idle_minutes, project.timezone) == (5, "Europe/Berlin")


def test_the_slug_stays(api, owner, project):
    answer = api(owner).patch(ONE, {"slug": "invoices"}, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == ["slug"]


def test_editors_and_viewers_read_only(api, editor, viewer):
    for user in (editor, viewer):
        client = api(user)
        assert client.get(ONE).json()["name"] == "Billing"
        assert client.patch(ONE, {"name": "Mine"}, format="json").status_code == 404
        assert client.delete(ONE).status_code == 404


def test_an_owner_deletes_a_project(api, owner, project):
    assert api(owner).delete(ONE).status_code == 204
    assert not Project.objects.exists()


def test_a_token_for_one_project_opens_no_other(api, owner, project):
    other = create_project(owner, name="Support", slug="support")
    client = api(owner, project=other)
    assert [result["slug"] for result in client.get(URL).json()["results"]] == ["support"]
    assert client.get(ONE).status_code == 404
    refused = client.post(URL, {"name": "Third"}, format="json")
    assert refused.status_code == 403
    assert "detail" in refused.json()


def test_a_token_does_what_its_scopes_allow(api, owner, project):
    reader = api(owner, scopes=["read"])
    assert reader.get(URL).status_code == 200
    assert reader.post(URL, {"name": "X"}, format="json").status_code == 403
    writer = api(owner, scopes=["read", "write"])
    assert writer.post(URL, {"name": "X"}, format="json").status_code == 201
    assert writer.delete(ONE).status_code == 403


def test_an_unknown_route_answers_in_json(api, owner):
    answer = api(owner).get("/api/v1/nowhere/")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not found."})


def test_roll_up_settings_are_read_only(api, owner, project):
    client = api(owner)
    merging = {
        "roll_percent": 100,
        **{f"{layer}_after_days": age.days for layer, age in ladder.AGES.items()},
    }
    payload = client.get(ONE).json()
    assert {name: payload[name] for name in merging} == merging
    changes = {"roll_percent": 150, "week_after_days": 3, "memory_daily_tokens": 5_000}
    changed = client.patch(ONE, changes, format="json")
    assert changed.status_code == 200
    assert changed.json() == payload | {"memory_daily_tokens": 5_000}
