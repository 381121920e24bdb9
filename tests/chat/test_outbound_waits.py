"""A request that waits for another host holds no database connection and no admission slot."""

import pytest
from django.db import connection, transaction

from chat.conversations import admission
from chat.models import Session
from chat.providers import ModelServer, ProviderError, discovery
from chat.providers.pydantic_ai import PydanticAIProvider
from memory.recall.embedders import EmbedderError
from memory.recall.embedders.remote import RemoteEmbedder
from projects.core import outbound_http
from projects.core.database import release_connections
from projects.core.outbound_http import OutboundFailure, UnreachableError

pytestmark = pytest.mark.django_db(transaction=True)

SERVER = ModelServer("compatible", "https://llm.example.org/v1", "key")


class Host:
    """A host that does not answer. `held` has, for each call, whether a connection is held."""

    def __init__(self, error: Exception) -> None:
        self.error, self.held = error, []

    def __call__(self, *args: object, **options: object) -> None:
        self.held.append(connection.connection is not None)
        raise self.error


@pytest.fixture
def host(monkeypatch) -> Host:
    host = Host(UnreachableError(OutboundFailure.CONNECTION))
    monkeypatch.setattr(outbound_http, "request", host)
    return host


@pytest.fixture
def released(monkeypatch, host) -> list[int]:
    """For each release of the admission slot, the number of calls of `host` before it."""
    releases: list[int] = []
    monkeypatch.setattr(admission, "release", lambda: releases.append(len(host.held)))
    return releases


@pytest.mark.parametrize("headers", [{}, {"X-Strata-Session": "shop"}])
def test_an_image_is_fetched_without_a_connection(api, owner, project, host, released, headers):
    image = {"type": "image_url", "image_url": {"url": "https://images.example.org/a.png"}}
    body = {"model": project.slug, "messages": [{"role": "user", "content": [image]}]}
    response = api(owner).post("/v1/chat/completions", body, format="json", headers=headers)
    assert response.json()["error"]["code"] == "invalid_image_url"
    assert host.held == [False]
    assert released == [0]


def test_a_provider_is_checked_without_a_connection(project, host):
    with pytest.raises(discovery.ProviderCheckError):
        discovery.check_server(SERVER)
    assert host.held == [False]


def test_ollama_is_asked_without_a_connection(project, monkeypatch):
    host = Host(OSError())
    monkeypatch.setattr(discovery, "urlopen", host)
    discovery.refresh_ollama()
    assert host.held == [False]


def test_a_model_is_tried_without_a_connection(project, scripted, monkeypatch):
    host = Host(ProviderError("It does not answer.", status=503))
    monkeypatch.setattr(PydanticAIProvider, "complete", host)
    assert discovery.try_model("openai-chat:scripted").error == "It does not answer."
    assert host.held == [False]


def test_a_query_is_embedded_elsewhere_without_a_connection(project, monkeypatch):
    host = Host(ProviderError("It does not answer.", status=503))
    monkeypatch.setattr(RemoteEmbedder, "_request", host)
    with pytest.raises(EmbedderError):
        RemoteEmbedder("openai:small", 3).embed_query("When is the cutover?")
    assert host.held == [False]


def test_the_connection_of_an_open_transaction_is_kept(project):
    with transaction.atomic():
        Session.objects.create(project=project, title="Cutover")
        release_connections()
        assert Session.objects.get().title == "Cutover"
