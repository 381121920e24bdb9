"""Streams of whom access is taken from end within five seconds; the reply goes on for the others.

At two real web processes: the one that says the reply, and one that only follows it.
"""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPException
from threading import Thread
from urllib.request import OpenerDirector, Request, urlopen

import pytest

from tests.scripted import ScriptedModel
from tests.server import Installation, Web, installed, signed_in

pytestmark = pytest.mark.process

WORDS = [f"word{number} " for number in range(8)]
SECONDS = 5.0

SETTING_UP = """
from django.contrib.auth import get_user_model
from projects.models import *
project = Project.objects.get()
for name in ("ina", "rea", "eva"):
    user = get_user_model().objects.create_user(name, password="pass-word-1")
    Membership.objects.create(project=project, user=user, role="editor")
"""
TAKING_AWAY = """
from django.contrib.auth import get_user_model
from django.utils import timezone
from projects.models import *
Token.objects.filter(name="revoked").delete()
Token.objects.filter(name="expired").update(expiry=timezone.now())
get_user_model().objects.filter(username="ina").update(is_active=False)
Membership.objects.filter(user__username="rea").delete()
"""


class Listener(Thread):
    """Reads a stream to its end, and knows when that was."""

    def __init__(self, opener: OpenerDirector | None, request: Request) -> None:
        super().__init__(daemon=True)
        self._open = opener.open if opener else urlopen
        self._request = request
        self.text = ""
        self.ended: float | None = None
        self.start()

    def run(self) -> None:
        # A server that stops cuts off who still listens.
        with suppress(HTTPException), self._open(self._request, timeout=120) as answer:
            while part := answer.read1(65_536):
                self.text += part.decode()
        self.ended = time.monotonic()

    def hears(self, text: str) -> bool:
        return _eventually(lambda: text in self.text)


def _eventually(condition, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture(scope="module")
def strata(tmp_path_factory, model) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("strata-revoked"), model) as web_processes:
        yield web_processes


@pytest.fixture(scope="module")
def webs(strata) -> Iterator[list[Web]]:
    with ExitStack() as stack:
        web_processes = [stack.enter_context(Web(strata)) for _ in range(2)]
        yield web_processes
        # They would wait for the streams that go on.
        for web in web_processes:
            web.kill()


def call(web: Web, token: str, method: str, path: str, body: object = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    http_request = Request(f"{web.url}/api/v1/{path}", data, headers, method=method)
    with urlopen(http_request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


@pytest.mark.timeout(300)
def test_streams_end_for_whom_access_is_taken_from_and_go_on_for_others(strata, webs, model):
    admin = strata.token
    slug = call(webs[0], admin, "POST", "projects/", {"name": "Billing"})["slug"]
    strata.manage("shell", "--verbosity=0", "-c", SETTING_UP)
    session = call(webs[0], admin, "POST", f"projects/{slug}/sessions/", {})["id"]
    tokens = {
        name: strata.manage("create_token", user, f"--name={name}")
        for name, user in (
            ("revoked", "admin"),
            ("expired", "admin"),
            ("inactive", "ina"),
            ("removed", "rea"),
            ("kept", "eva"),
        )
    }
    permits = model.dictate("".join(WORDS).strip())
    messages_url = f"{webs[0].url}/api/v1/sessions/{session}/messages/"

    def events(token: str, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"} | more

    # Its own reply is taken from whoever asked, too.
    kind = {"Content-Type": "application/json"}
    body = json.dumps({"content": "When?"}).encode()
    listener = Listener(
        None, Request(messages_url, body, events(tokens["revoked"], **kind), method="POST")
    )
    assert listener.hears("event: message")
    permits.release(2)
    results = call(webs[0], admin, "GET", f"sessions/{session}/messages/")["results"]
    reply = results[-1]["id"]

    listening = {}
    for number, web in enumerate(webs):
        for name, token in tokens.items():
            url = f"{web.url}/api/v1/messages/{reply}/stream/"
            listening[name, number] = Listener(None, Request(url, headers=events(token)))
        for name, user in (("inactive", "ina"), ("removed", "rea"), ("kept", "eva")):
            page = f"{web.url}/projects/{slug}/chats/{session}/events/?version=999"
            watching = Listener(signed_in(web, user), Request(page))
            listening[f"{name} watching", number] = watching
    assert all(
        item.hears("word1" if "watching" not in name else ": ping")
        for (name, _), item in listening.items()
    )

    strata.manage("shell", "--verbosity=0", "-c", TAKING_AWAY)
    taken_at = time.monotonic()
    losing = [stream for (name, _), stream in listening.items() if not name.startswith("kept")]
    losing.append(listener)
    keeping = [stream for (name, _), stream in listening.items() if name.startswith("kept")]
    assert _eventually(lambda: all(stream.ended for stream in losing), SECONDS)
    print(f"ended after {max(stream.ended for stream in losing) - taken_at:.2f} s at the latest")
    assert all(stream.ended is None for stream in keeping)
    for (name, _), stream in listening.items():
        if not name.startswith("kept") and "watching" not in name:
            assert "You no longer have access" in stream.text.rpartition("event: error")[2]

    permits.release(len(WORDS))
    for number in range(2):
        kept_stream = listening["kept", number]
        assert kept_stream.hears("event: done")
        assert _eventually(lambda: kept_stream.ended is not None)  # noqa: B023
    assert call(webs[0], admin, "GET", f"messages/{reply}/")["status"] == "complete"
    assert all("word7" not in entry.text for entry in losing)


@pytest.mark.timeout(300)
def test_so_do_streams_on_the_wire_of_openai(strata, webs, model):
    token = strata.manage("create_token", "admin", "--name=wire")
    slug = call(webs[0], token, "POST", "projects/", {"name": "Wire"})["slug"]
    permits = model.dictate("".join(WORDS).strip())
    body = {"model": slug, "stream": True, "messages": [{"role": "user", "content": "When?"}]}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url = f"{webs[0].url}/v1/chat/completions"
    listener = Listener(None, Request(url, json.dumps(body).encode(), headers, method="POST"))
    permits.release(3)
    assert listener.hears("word1")
    strata.manage("revoke_token", "admin", "--name=wire")
    assert _eventually(lambda: listener.ended, SECONDS)
    permits.release(len(WORDS))
    assert "invalid_api_key" in listener.text
    assert "word7" not in listener.text and "[DONE]" not in listener.text
