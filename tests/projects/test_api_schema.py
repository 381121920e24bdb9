"""/api/v1/schema/ and /api/v1/docs/: the API describes itself."""

import re

import pytest
from django.templatetags.static import static

from tests.access.routes import routes

pytestmark = pytest.mark.django_db

DELETE_PROJECT = ("delete", "/api/v1/projects/{slug}/")
# The last is the former URL of a reply's sources, which redirects.
UNDESCRIBED = ("schema", "docs", "old-api-reply-sources")


@pytest.fixture
def schema(client) -> dict:
    answer = client.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    return answer.json()


def test_the_schema_is_valid_and_names_every_route(schema):
    # Imported here, because it takes seconds in each process of a parallel run.
    from drf_spectacular.validation import validate_schema

    validate_schema(schema)
    paths = {
        "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route.pattern).replace("{pk}", "{id}")
        for route in routes()
        if route.pattern.startswith("api/v1/") and route.name not in UNDESCRIBED
    }
    assert set(schema["paths"]) == paths


@pytest.mark.parametrize(
    ("query", "headers"),
    [("", {"Accept-Language": "de"}), ("?lang=de", {})],
    ids=["header", "query"],
)
def test_the_schema_is_in_english_for_everybody(client, schema, query, headers):
    accept = {"Accept": "application/vnd.oai.openapi+json"}
    answer = client.get(f"/api/v1/schema/{query}", headers=accept | headers)
    assert answer.json() == schema


def test_a_message_may_be_answered_with_data_or_events(schema):
    answers = schema["paths"]["/api/v1/sessions/{id}/messages/"]["post"]["responses"]
    assert set(answers["201"]["content"]) == {"application/json"}
    assert set(answers["200"]["content"]) == {"text/event-stream"}
    event = answers["200"]["content"]["text/event-stream"]["schema"]["properties"]["event"]
    assert {"message", "lookups", "thinking", "delta", "done", "error"} == {*event["enum"]}


def test_no_route_sends_a_file_as_json(schema):
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            content = operation["responses"].get("200", {}).get("content", {})
            json = content.get("application/json", {}).get("schema", {})
            assert json.get("format") != "binary", path


def test_every_route_says_how_it_fails(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            codes = {*operation["responses"]}
            assert {"401", "403", "429"} <= codes, (method, path)
            assert "{" not in path or "404" in codes, (method, path)
            if "requestBody" in operation:
                assert {"400", "413", "415"} <= codes, (method, path)
            # tests/access/test_archived.py sends these requests to an archived project.
            is_in_project = path.startswith(("/api/v1/projects/{", "/api/v1/sessions/{"))
            if is_in_project and method != "get" and (method, path) != DELETE_PROJECT:
                assert "409" in codes, (method, path)


def test_changes_accept_a_condition(schema):
    path_item = schema["paths"]["/api/v1/sessions/{id}/"]
    assert "412" in path_item["patch"]["responses"] and "412" in path_item["delete"]["responses"]
    assert "ETag" in path_item["get"]["responses"]["200"]["headers"]
    assert "304" in path_item["get"]["responses"]


def test_the_routes_ask_for_a_bearer_token(schema):
    assert schema["components"]["securitySchemes"] == {
        "token": {"type": "http", "scheme": "bearer"}
    }
    assert schema["paths"]["/api/v1/projects/"]["get"]["security"] == [{"token": []}]


def test_the_docs_run_no_script_without_the_nonce(client):
    answer = client.get("/api/v1/docs/")
    page = answer.content.decode()
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert nonce
    assert all(f'nonce="{nonce}"' in tag for tag in re.findall("<script[^>]*>", page))
    assert "<style" not in page
    assert "http://" not in page
    assert "https://" not in page
    assert static("drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js") in page
