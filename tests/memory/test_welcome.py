"""The first run, as an administrator sees it: which model answers, and a first project."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.urls import reverse

from memory import demo
from projects.models import Project

pytestmark = pytest.mark.django_db


class Tags(BaseHTTPRequestHandler):
    """An Ollama with two models."""

    body = json.dumps({"models": [{"name": "qwen3:8b"}, {"name": "llama3.2:3b"}]}).encode()

    def do_GET(self):
        self.send_response(200 if self.path == "/api/tags" else 404)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def ollama(settings) -> Iterator[type[Tags]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tags)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.OLLAMA_URL = f"http://127.0.0.1:{server.server_port}/v1"
    yield Tags
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def nothing_around(settings):
    settings.OLLAMA_URL = "http://127.0.0.1:9/v1"
    settings.MODEL_KEYS = {}


@pytest.fixture
def visit(admin_client):
    def ask(**value):
        url = reverse("welcome")
        return admin_client.post(url, value) if value else admin_client.get(url)

    return ask


def test_an_administrator_without_a_project_is_welcomed(admin_client, project):
    assert admin_client.get("/").url == reverse("welcome")
    assert admin_client.get("/?all").status_code == 200
    admin_client.post(reverse("welcome"), {"name": "Mine", "model": ""})
    assert admin_client.get("/").status_code == 200


def test_others_are_shown_the_list(client, stranger):
    client.force_login(stranger)
    assert client.get("/").status_code == 200


def test_models_at_hand_are_offered(visit, ollama, settings):
    settings.MODEL_KEYS = {"anthropic": "ANTHROPIC_API_KEY"}
    offered = visit().content.decode()
    assert 'value="ollama:qwen3:8b"' in offered
    assert 'value="anthropic:' in offered
    assert settings.CHAT_MODEL in offered


@pytest.mark.parametrize("body", [b"", b"[]", b'{"models": [{"name": 7}]}', b'{"models": 1}'])
def test_a_server_that_is_no_ollama_offers_nothing(visit, ollama, monkeypatch, body):
    monkeypatch.setattr(ollama, "body", body)
    assert "ollama:" not in visit().content.decode()


def test_a_model_is_tried_and_its_answer_shown(visit, scripted, settings):
    scripted.say("Hello from here.")
    tried = visit(action="try", model="", name="")
    assert "Hello from here." in tried.content.decode()
    assert not Project.objects.exists()


def test_the_error_of_a_model_is_shown(visit, scripted):
    from tests.scripted import Answer

    scripted.default = Answer(status=500)
    page_text = visit(action="try", model="other", other="openai-chat:scripted").content.decode()
    assert "did not reply" in page_text


def test_the_project_answers_with_the_chosen_model(visit):
    response = visit(name="Ledger", model="other", other="openai-chat:gpt-5-mini")
    project = Project.objects.get()
    assert response.url == reverse("project", args=["ledger"])
    assert project.chat_model == "openai-chat:gpt-5-mini"


@pytest.mark.parametrize(
    "value",
    [
        {"name": "", "model": ""},
        {"name": "Ledger", "model": "ollama:not-listed"},
        {"name": "Ledger", "model": "other", "other": ""},
        {"name": "Ledger", "model": "other", "other": "gpt"},
    ],
)
def test_incomplete_input_creates_no_project(visit, value):
    assert visit(**value).status_code == 400
    assert not Project.objects.exists()


def test_the_demo_opens_on_its_memory(visit, monkeypatch, tmp_path):
    # Three chats are enough.
    header, *chats = demo.TALK.read_text().split("[[chat]]")
    short = tmp_path / "demo.toml"
    short.write_text("[[chat]]".join([header, *chats[-3:]]))
    monkeypatch.setattr(demo, "TALK", short)
    assert visit(action="demo").url == reverse("memory", args=["island-ferry"])
