"""The first run, as an administrator sees it: which model answers, and a first project."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.context_processors import DEMO_MODEL
from chat.models import Message
from memory import demo
from memory.models import Chunk
from memory.tasks import make_demo
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
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
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


@pytest.fixture
def short_demo(monkeypatch, tmp_path) -> None:
    """Three chats are enough."""
    header, *chats = demo.TALK.read_text().split("[[chat]]")
    short = tmp_path / "demo.toml"
    short.write_text("[[chat]]".join([header, *chats[-3:]]))
    monkeypatch.setattr(demo, "TALK", short)


@pytest.fixture
def queued(monkeypatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(make_demo, "delay", calls.append)
    return calls


URL = "/projects/island-ferry/"


def test_the_demo_is_made_by_a_worker_while_its_page_shows_the_progress(
    visit, admin_client, queued, short_demo
):
    assert visit(action="demo").url == URL
    project = Project.objects.get()
    assert queued == [str(project.pk)]
    text = admin_client.get(URL).content.decode()
    assert "Waiting to start…" in text
    assert 'name="content"' not in text
    assert '<meta http-equiv="refresh"' in text
    Project.objects.update(demo_progress=40)
    assert 'value="40"' in admin_client.get(f"{URL}?part=progress").content.decode()

    make_demo(str(project.pk))
    assert admin_client.get(f"{URL}?part=progress").content.decode().strip() == ""
    text = admin_client.get(URL).content.decode()
    assert "refresh" not in text
    for question in DEMO_MODEL.questions:
        assert text.count(f'value="{question}"') == 1
    assert project.entries.exists()
    # Recall finds its chats.
    assert Chunk.objects.filter(project=project).exists()


def test_a_second_request_makes_no_second_demo(visit, queued, short_demo):
    visit(action="demo")
    assert visit(action="demo").url == URL
    project = Project.objects.get()
    # Both tasks may come; the second finds nothing to do.
    for task in queued:
        make_demo(task)
    assert project.entries.filter(granularity="conversation").count() == 3
    assert visit(action="demo").url == URL
    assert len(queued) == 2
    assert Project.objects.count() == 1


def test_an_archived_demo_is_not_opened_again(visit, queued):
    visit(action="demo")
    Project.objects.update(archived_at=timezone.now())
    assert visit(action="demo").url != URL


def test_without_a_broker_the_demo_is_made_at_once(visit, monkeypatch, short_demo):
    def away(*_):
        raise ConnectionError("away")

    monkeypatch.setattr(make_demo, "delay", away)
    assert visit(action="demo").url == URL
    assert not Project.objects.get().is_being_made


def test_a_question_of_the_demo_begins_a_chat(visit, admin_client, queued, short_demo, scripted):
    visit(action="demo")
    make_demo(queued[0])
    question = DEMO_MODEL.questions[0]
    answer = admin_client.post(f"{URL}chats/", {"content": question, "visibility": "project"})
    assert answer.status_code == 302
    assert Message.objects.filter(text=question, author__isnull=False).exists()


@pytest.mark.django_db(transaction=True)
def test_the_demo_model_is_loaded_and_reads_the_prompt_meanwhile(
    visit, queued, short_demo, scripted, settings, monkeypatch
):
    settings.CHAT_MODEL = "demo"
    settings.DEMO_MODEL_URL = scripted.base_url.removesuffix("/v1")
    visit(action="demo")
    percentages: list[int] = []
    store = demo._store_progress

    def note(project_id, percent: int) -> None:
        store(project_id, percent)
        # In the thread, with its connection: others see it too.
        percentages.append(Project.objects.get().demo_progress)

    monkeypatch.setattr(demo, "_store_progress", note)
    make_demo(queued[0])
    assert percentages == [0, 26, 53]
    texts = [str(request) for request in scripted.requests]
    assert any(DEMO_MODEL.questions[0] in text and "payments team" in text for text in texts)
