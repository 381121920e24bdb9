"""/api/v1/schema/ and /api/v1/docs/: the API tells of itself."""

import re

import pytest
from drf_spectacular.validation import validate_schema

pytestmark = pytest.mark.django_db


@pytest.fixture
def schema(client) -> dict:
    answer = client.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    return answer.json()


def test_the_schema_is_valid_and_names_every_route(schema):
    validate_schema(schema)
    assert set(schema["paths"]) == {
        "/api/v1/tokens/",
        "/api/v1/tokens/{id}/",
        "/api/v1/projects/",
        "/api/v1/projects/{slug}/",
        "/api/v1/projects/{slug}/members/",
        "/api/v1/projects/{slug}/members/{username}/",
        "/api/v1/projects/{slug}/sessions/",
        "/api/v1/projects/{slug}/facts/",
        "/api/v1/projects/{slug}/facts/{id}/",
        "/api/v1/projects/{slug}/forget/",
        "/api/v1/projects/{slug}/memory/",
        "/api/v1/projects/{slug}/recall/",
        "/api/v1/projects/{slug}/memory/entries/",
        "/api/v1/projects/{slug}/memory/entries/{id}/",
        "/api/v1/sessions/{id}/",
        "/api/v1/projects/{slug}/export/",
        "/api/v1/projects/{slug}/profile/",
        "/api/v1/projects/{slug}/notes/",
        "/api/v1/projects/{slug}/notes/{id}/",
        "/api/v1/projects/{slug}/blocks/",
        "/api/v1/projects/{slug}/blocks/{name}/",
        "/api/v1/projects/{slug}/webhooks/",
        "/api/v1/projects/{slug}/webhooks/{id}/",
        "/api/v1/projects/{slug}/webhooks/{id}/secret/",
        "/api/v1/projects/{slug}/webhooks/{id}/test/",
        "/api/v1/projects/{slug}/webhooks/{id}/deliveries/",
        "/api/v1/projects/{slug}/activity/",
        "/api/v1/projects/{slug}/usage/",
        "/api/v1/sessions/{id}/restore/",
        "/api/v1/sessions/{id}/close/",
        "/api/v1/sessions/{id}/messages/",
        "/api/v1/sessions/{id}/prompt/",
        "/api/v1/sessions/{id}/summarize/",
        "/api/v1/sessions/{id}/export/",
        "/api/v1/projects/{slug}/imports/",
        "/api/v1/projects/{slug}/imports/{id}/",
        "/api/v1/sessions/{id}/attachments/",
        "/api/v1/attachments/{id}/",
        "/api/v1/sessions/{id}/clear/",
        "/api/v1/sessions/{id}/fork/",
        "/api/v1/messages/{id}/",
        "/api/v1/messages/{id}/reactions/",
        "/api/v1/messages/{id}/regenerate/",
        "/api/v1/messages/{id}/rerun/",
        "/api/v1/messages/{id}/choose/",
        "/api/v1/messages/{id}/stop/",
        "/api/v1/messages/{id}/stream/",
        "/api/v1/messages/{id}/revisions/",
        "/api/v1/messages/{id}/receipt/",
    }


def test_a_message_may_be_answered_with_data_or_events(schema):
    answers = schema["paths"]["/api/v1/sessions/{id}/messages/"]["post"]["responses"]
    assert set(answers["201"]["content"]) == {"application/json"}
    assert set(answers["200"]["content"]) == {"text/event-stream"}


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
    assert "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js" in page
