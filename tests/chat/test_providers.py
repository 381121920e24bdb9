"""Providers of models and their keys on the Models page, with servers faked at the wire."""

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from chat import providers
from chat.models import Call, ModelProvider
from chat.prompt.types import PromptMessage
from chat.providers import discovery
from chat.providers.catalogue import (
    KnownModel,
    ModelNameError,
    check_model,
    known_models,
    models_for,
)
from chat.providers.descriptions import describe
from chat.tasks import refresh_models
from projects.models.server import save_defaults
from projects.services import create_project

pytestmark = pytest.mark.django_db
KEY = "sk-canary-0123456789"
LOCAL = [ip_network("127.0.0.0/8")]
HELLO = [PromptMessage("user", "Hello")]


class Wire(BaseHTTPRequestHandler):
    """A provider in the formats of OpenAI and Anthropic that accepts one key."""

    key = KEY
    models: object = {"data": [{"id": "small"}, {"id": "large", "context_length": 200_000}]}
    status = 200
    seen: list[tuple[str, dict]] = []

    def do_GET(self) -> None:
        self.respond(self.models)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, body))
        usage = {"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 5}
        text = "Hello from the wire."
        if self.path.endswith("/messages"):
            self.respond(
                {"id": "m", "type": "message", "role": "assistant", "model": body["model"]}
                | {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
                | {"stop_sequence": None, "usage": usage}
            )
        else:
            message = {"role": "assistant", "content": text}
            self.respond(
                {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
                | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                | {"usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}
            )

    def respond(self, value: object) -> None:
        sent = (self.headers.get("Authorization", ""), self.headers.get("x-api-key", ""))
        is_known = f"Bearer {self.key}" in sent or self.key in sent
        self.send_response(self.status if is_known else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(value if isinstance(value, bytes) else json.dumps(value).encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def wire(settings, monkeypatch) -> Iterator[type[Wire]]:
    settings.OUTBOUND_ALLOW = LOCAL
    settings.MODEL_KEYS = {}
    settings.OPENAI_URL = ""
    settings.OLLAMA_URL = "http://127.0.0.1:9/v1"
    monkeypatch.setattr(Wire, "seen", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Wire)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    addresses = {kind: f"{address}/v1" for kind in providers.ADDRESSES} | {"anthropic": address}
    monkeypatch.setattr(providers, "ADDRESSES", addresses)
    Wire.address = f"{address}/v1"
    providers.clear_provider_cache()
    yield Wire
    providers.clear_provider_cache()
    server.shutdown()
    server.server_close()


@pytest.fixture
def add(admin_client):
    admin_client.post("/accounts/confirm/", {"password": "password"})

    def post(**values: str):
        return admin_client.post(reverse("models"), values)

    return post


def compatible(wire: type[Wire], **values: str) -> dict[str, str]:
    return {"kind": "compatible", "name": "lab", "address": wire.address, "key": KEY} | values


def test_one_model_is_in_the_singular(add, wire, admin_client, monkeypatch):
    monkeypatch.setattr(wire, "models", {"data": [{"id": "small"}]})
    add(**compatible(wire))
    assert "lab works. It offers 1 model." in admin_client.get(reverse("models")).text


def test_a_key_is_tested_and_its_models_can_be_chosen_at_once(add, wire, admin_client):
    assert add(**compatible(wire)).status_code == 302
    page = admin_client.get(reverse("models")).content.decode()
    assert "lab:small" in page
    assert "200k tokens" in page
    completion = providers.get_provider("lab:large", "test").complete(HELLO, 10)
    assert completion.text == "Hello from the wire."
    assert wire.seen == [("/v1/chat/completions", wire.seen[0][1])]
    assert wire.seen[0][1]["model"] == "large"


@pytest.mark.parametrize("kind", ["openai-chat", "openrouter", "google", "mistral", "groq"])
def test_a_provider_of_the_openai_format(add, wire, kind):
    assert add(kind=kind, key=KEY).status_code == 302
    assert providers.get_provider(f"{kind}:small", "test").complete(HELLO, 10).text
    assert wire.seen[0][1]["model"] == "small"


def test_anthropic_has_its_own_format(add, wire):
    assert add(kind="anthropic", key=KEY).status_code == 302
    completion = providers.get_provider("anthropic:small", "test").complete(HELLO, 10)
    assert completion.text == "Hello from the wire."
    assert completion.finished.output_tokens == 2
    assert wire.seen[0][0] == "/v1/messages"


def test_the_key_is_nowhere_in_plain_text(add, wire, admin_client, caplog):
    add(**compatible(wire))
    add(kind="openai-chat", key="sk-wrong-canary-98765")
    providers.get_provider("lab:large", "test").complete(HELLO, 10)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(p)::text FROM chat_modelprovider p")
        stored = cursor.fetchall()
    pages = [admin_client.get(reverse("models")).content.decode(), str(stored), caplog.text]
    pages.append(repr(providers.server_of("lab:large")))
    assert not [page for page in pages if "canary" in page]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"key": "sk-wrong"}, "address", "rejected the key"),
        ({"address": "http://127.0.0.1:9999/v1"}, "address", "connection failed"),
        ({"address": "ftp://example.org"}, "address", "http://"),
        ({"address": ""}, "address", "Enter the address"),
        ({"name": "openai-chat"}, "name", "reserved"),
        ({"name": "Two words"}, "name", "lower-case"),
        ({"kind": "groq", "key": ""}, "key", "Enter a key"),
        ({"key": "sk-canary…9"}, "key", "not a key"),
        ({"kind": "groq", "key": "sk-\n1"}, "key", "not a key"),
        ({"kind": "groq", "key": "sk-wrong"}, "key", "rejected the key"),
    ],
)
def test_a_mistake_is_explained_and_nothing_is_saved(add, wire, change, field, message):
    answer = add(**compatible(wire, **change))
    assert answer.status_code == 400
    assert message in str(answer.context["form"].errors[field])
    assert not ModelProvider.objects.exists()


def test_an_internal_address_says_how_to_allow_it(add, wire, settings):
    settings.OUTBOUND_ALLOW = []
    answer = add(**compatible(wire))
    assert "STRATA_OUTBOUND_ALLOW" in str(answer.context["form"].errors["address"])


@pytest.mark.parametrize("models", [b"", b"[]", b'{"data": 7}', b'{"data": [7]}', b"<html>"])
def test_a_server_without_a_list_of_models_is_refused(add, wire, monkeypatch, models):
    monkeypatch.setattr(wire, "models", models)
    assert "no list of models" in str(add(**compatible(wire)).context["form"].errors["address"])


def test_google_rejects_a_key_with_another_status(add, wire, monkeypatch):
    monkeypatch.setattr(Wire, "status", 400)
    monkeypatch.setattr(Wire, "models", [{"error": {"message": "API key not valid. Pass one."}}])
    page = add(kind="google", key=KEY).content.decode()
    assert "The provider rejected the key." in page
    assert not ModelProvider.objects.exists()


def test_an_address_that_became_internal_is_not_called(add, wire, settings):
    add(**compatible(wire))
    settings.OUTBOUND_ALLOW = []

    provider = providers.get_provider("lab:large", "test")

    async def stream() -> None:
        async for _event in provider.stream(HELLO):
            pass

    with pytest.raises(providers.ProviderError, match="connection"):
        asyncio.run(stream())
    assert wire.seen == []


def test_the_environment_wins(add, wire, settings, admin_client):
    add(kind="groq", key=KEY)
    settings.MODEL_KEYS = {"groq": "GROQ_API_KEY"}
    settings.MODEL_SECRETS = {"groq": "sk-of-the-environment"}
    server = providers.server_of("groq:any")
    assert server and server.key == "sk-of-the-environment"
    assert "GROQ_API_KEY" in admin_client.get(reverse("models")).content.decode()


def test_an_address_in_the_environment_wins_and_is_listed(add, wire, settings, admin_client):
    add(kind="openai-chat", key=KEY)
    settings.OPENAI_URL = "https://llm.example.org/v1"
    page = admin_client.get(reverse("models")).content.decode()
    assert "OPENAI_BASE_URL" in page and "Not used" in page


def test_a_new_secret_key_needs_the_old_one_or_the_key_again(add, wire, settings, admin_client):
    add(kind="groq", key=KEY)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another " * 8
    providers.clear_provider_cache()
    server = providers.server_of("groq:any")
    assert server and server.key == KEY
    settings.SECRET_KEY_FALLBACKS = []
    providers.clear_provider_cache()
    with pytest.raises(providers.ProviderError, match="Models page"):
        providers.server_of("groq:any")


def test_a_second_key_replaces_the_first_and_removing_ends_it(add, wire, admin_client, monkeypatch):
    add(kind="groq", key=KEY)
    monkeypatch.setattr(wire, "key", "sk-second")
    add(kind="groq", key="sk-second")
    [provider] = ModelProvider.objects.all()
    assert provider.key == "sk-second"
    admin_client.post(reverse("model-remove", args=[provider.pk]))
    assert providers.server_of("groq:any") is None


def test_a_project_can_choose_from_the_list(add, wire, admin_client, admin_user):
    add(**compatible(wire))
    project = create_project(admin_user, name="Lab")
    page = admin_client.get(reverse("project-settings", args=[project.slug])).content.decode()
    assert 'value="lab:large"' in page


DETAILED = {
    "data": [
        {
            "id": "vendor/wide",
            "context_length": 200_000,
            "architecture": {"input_modalities": ["text", "image"]},
            "supported_parameters": ["tools", "temperature", "reasoning"],
            "pricing": {"prompt": "0.00000025", "completion": "0.000002"},
        },
        {"id": "text-embedding-1"},
    ]
}


def test_a_list_shows_context_abilities_and_price_and_leaves_out_what_does_not_chat(
    add, wire, admin_client, monkeypatch
):
    monkeypatch.setattr(wire, "models", DETAILED)
    add(**compatible(wire))
    page = admin_client.get(reverse("models")).content.decode()
    assert "200k tokens · vision · tools · reasoning · $0.25 / $2" in page
    assert "text-embedding-1" not in page


@pytest.mark.parametrize("price", ["1e999999", "1e-999999", "NaN", "free", -1, None, ["1"]])
def test_a_list_with_an_invalid_price_is_shown(add, wire, admin_client, monkeypatch, price):
    row = {"id": "vendor/wide", "context_length": 200_000, "pricing": {"prompt": price}}
    monkeypatch.setattr(wire, "models", {"data": [row]})
    add(**compatible(wire))
    assert "200k tokens" in admin_client.get(reverse("models")).content.decode()


@pytest.mark.parametrize("size", [10**400, -1])
def test_a_list_with_an_impossible_context_size_is_shown(
    add, wire, admin_client, monkeypatch, size
):
    monkeypatch.setattr(wire, "models", {"data": [{"id": "wide", "context_length": size}]})
    add(**compatible(wire))
    page = admin_client.get(reverse("models"))
    assert page.status_code == 200
    assert KnownModel.load("lab", ModelProvider.objects.get().catalogue[0]).context is None


@pytest.mark.parametrize(
    ("kind", "name", "details"),
    [
        ("openai-chat", "gpt-5-mini", "400k tokens · vision · tools · reasoning · $0.25 / $2"),
        ("anthropic", "claude-haiku-4-5", "200k tokens · vision · tools · reasoning · $1 / $5"),
        ("google", "gemini-2.5-flash", "1049k tokens · vision · tools · reasoning · $0.3 / $2.5"),
        ("compatible", "small", ""),
    ],
)
def test_what_libraries_know_of_a_model(kind, name, details):
    assert KnownModel.load("x", describe(kind, name, {})).details == details


def test_a_provider_without_a_name_is_refused_in_plain_words(add, wire):
    page = add(**compatible(wire, name=""))
    assert page.status_code == 400
    assert "Enter a name." in page.text and "lower-case" not in page.text


def test_the_server_gets_its_models_in_the_page(add, wire, admin_client, admin_user):
    add(**compatible(wire))
    project = create_project(admin_user, name="Lab")
    answer = admin_client.post(
        reverse("models"), {"action": "defaults", "chat_model": "lab:small", "system_model": ""}
    )
    assert answer.status_code == 302
    assert (project.chat_model_name, project.system_model_name) == ("lab:small", "lab:small")
    refused = {"action": "defaults", "chat_model": "lab:unknown", "system_model": ""}
    assert admin_client.post(reverse("models"), refused).status_code == 400
    refused["chat_model"], refused["system_model"] = "lab:small", "extractive"
    admin_client.post(reverse("models"), refused)
    assert (project.chat_model_name, project.system_model_name) == ("lab:small", "extractive")


def test_the_environment_wins_over_the_page_for_the_server_too(settings, project, admin_client):
    save_defaults("lab:small", "lab:large")
    settings.HAS_CHAT_MODEL = settings.HAS_SYSTEM_MODEL = True
    settings.CHAT_MODEL = settings.SYSTEM_MODEL = "anthropic:x"
    assert (project.chat_model_name, project.system_model_name) == ("anthropic:x", "anthropic:x")


def test_administrators_choose_the_models_of_a_project(add, wire, admin_client, project):
    add(**compatible(wire))
    url = reverse("project-models", args=[project.slug])
    both = {"allowed_models": ["lab:small", "lab:large"]}
    assert "allowed models" in admin_client.post(url, both).content.decode()
    assert admin_client.post(url, both | {"chat_model": "lab:large"}).status_code == 302
    project.refresh_from_db()
    assert [*models_for(project)] == ["lab:large", "lab:small"]
    assert not project.allows_model("demo")
    admin_client.post(url, {"chat_model": ""})
    project.refresh_from_db()
    assert project.allowed_models == []


def test_lists_are_read_again_and_survive_a_failure(add, wire, settings, monkeypatch):
    add(**compatible(wire))
    settings.MODEL_KEYS, settings.MODEL_SECRETS = {"groq": "GROQ_API_KEY"}, {"groq": KEY}
    monkeypatch.setattr(discovery, "list_ollama_models", lambda: ["ollama:qwen3:8b"])
    monkeypatch.setattr(wire, "models", {"data": [{"id": "third"}]})
    refresh_models()
    assert [*known_models()] == ["demo", "groq:third", "lab:third", "ollama:qwen3:8b"]
    monkeypatch.setattr(wire, "status", 500)
    settings.MODEL_KEYS, settings.MODEL_SECRETS = {}, {}
    monkeypatch.setattr(discovery, "list_ollama_models", lambda: [])
    refresh_models()
    assert [*known_models()] == ["demo", "lab:third"]
    assert providers.server_of("groq:third") is None


def test_a_provider_that_is_deleted_or_changed_meanwhile_stays_so(add, wire, monkeypatch):
    add(**compatible(wire))
    monkeypatch.setattr(discovery, "list_ollama_models", lambda: [])
    check = discovery.check_server

    def check_late(*args):
        found = check(*args)
        ModelProvider.objects.update(encrypted_key="another")
        return found

    monkeypatch.setattr(discovery, "check_server", check_late)
    refresh_models()
    assert ModelProvider.objects.get().encrypted_key == "another"

    def check_too_late(*args):
        found = check(*args)
        ModelProvider.objects.all().delete()
        return found

    ModelProvider.objects.all().delete()
    add(**compatible(wire))
    monkeypatch.setattr(discovery, "check_server", check_too_late)
    refresh_models()
    assert not ModelProvider.objects.exists()


def test_all_chat_models_of_ollama_are_listed(monkeypatch):
    names = [*(f"qwen3:{size}b" for size in range(30)), "nomic-embed-text:latest", 7]
    answers = {"/api/tags": {"models": [{"name": name} for name in names]}, "/api/show": {}}
    monkeypatch.setattr(discovery, "_ask_ollama", lambda path, content=None: answers[path])
    discovery.refresh_ollama()
    [row] = ModelProvider.objects.all()
    assert [item["name"] for item in row.catalogue] == names[:30]


def test_a_model_of_ollama_that_only_embeds_is_not_offered(monkeypatch, admin_client, project):
    abilities = {"bge-m3": ["embedding"], "qwen3": ["completion", "tools"], "old": None}
    requests = []

    def answer(path, content=None):
        if not content:
            return {"models": [{"name": name} for name in abilities]}
        requests.append(content["model"])
        return {"model_info": {}, "capabilities": abilities[content["model"]]}

    # As an earlier version stored it.
    ModelProvider.objects.create(name="ollama", kind="ollama", catalogue=[{"name": "bge-m3"}])
    monkeypatch.setattr(discovery, "_ask_ollama", answer)
    for _ in range(2):
        discovery.refresh_ollama()
    assert requests == [*abilities]
    assert [name for name in known_models() if "ollama" in name] == ["ollama:qwen3", "ollama:old"]
    assert "ollama:bge-m3" not in admin_client.get(reverse("models")).text
    with pytest.raises(ModelNameError, match="lists no model “bge-m3”"):
        check_model(project, "ollama:bge-m3")


def test_two_processes_find_the_models_of_ollama_at_once(monkeypatch):
    monkeypatch.setattr(discovery, "list_ollama_models", lambda: ["ollama:qwen3:8b"])

    def describe_late(name: str) -> dict[str, object]:
        row = {"name": name, "temperature": True}
        ModelProvider.objects.create(name="ollama", kind="ollama", catalogue=[row])
        return row

    monkeypatch.setattr(discovery, "_describe_ollama", describe_late)
    discovery.refresh_ollama()
    assert ModelProvider.objects.get().catalogue[0]["name"] == "qwen3:8b"


def test_a_month_of_summaries_is_estimated_from_the_last_week(add, admin_client, project):
    for days, kind in ((1, "conversation"), (2, "title"), (3, "reply"), (8, "digest")):
        at = timezone.now() - timedelta(days=days)
        Call.objects.create(project=project, kind=kind, model="x", cost="0.7", started_at=at)
    assert "$6.00 a month" in admin_client.get(reverse("models")).content.decode()
