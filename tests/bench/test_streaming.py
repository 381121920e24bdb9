"""How long a reader waits for the first word: through Strata, and from the model itself."""

import json
import time
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest

from tests.scripted import Answer, ScriptedModel
from tests.server import Installation, Web, installed

pytestmark = pytest.mark.timeout(1_800)

ROUNDS = 40
# 300 ms to the first token, then 20 a second.
SPOKEN = Answer("So it is and so it was.", before=0.25, delay=0.05)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(default=SPOKEN) as server:
        yield server


@pytest.fixture(scope="module")
def strata(model, tmp_path_factory) -> Iterator[tuple[Web, str, str]]:
    """A running web process, an owner's token, and the address of a session with a past."""
    with (
        installed(tmp_path_factory.mktemp("strata"), model) as installation,
        Web(installation) as web,
    ):
        token = installation.token
        yield web, token, session(web, token, installation)


def session(web: Web, token: str, installation: Installation) -> str:
    project = post(f"{web.url}/api/v1/projects/", token, {"name": "Billing"})
    begun = post(f"{web.url}/api/v1/projects/{project['slug']}/sessions/", token, {})
    messages = f"{web.url}/api/v1/sessions/{begun['id']}/messages/"
    for number in range(30):
        body = {"content": f"Build {number} takes {number} minutes.", "reply": False}
        post(messages, token, body)
    return messages


def post(url: str, token: str, content: dict) -> dict:
    with opened(url, token, content) as answer:
        return json.load(answer)


def opened(url: str, token: str, content: dict, accept: str = "application/json"):
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": accept,
    }
    return urlopen(Request(url, json.dumps(content).encode(), headers), timeout=60)


def first(url: str, token: str, content: dict, sign: bytes) -> float:
    """Seconds until a line with `sign` comes; the rest is read too."""
    began = time.perf_counter()
    with opened(url, token, content, "text/event-stream") as answer:
        for line in answer:
            if sign in line:
                took = time.perf_counter() - began
                answer.read()
                return took
    raise AssertionError("Nothing was said.")


def test_the_first_word_comes_hardly_later_than_from_the_model(model, strata, compare):
    web, token, messages = strata
    body = {"content": "How long does build 7 take?"}
    directly = {
        "model": "scripted",
        "stream": True,
        "messages": [{"role": "user", "content": body["content"]}],
    }
    first(messages, token, body, b"event: delta")
    base, against = [], []
    for _ in range(ROUNDS):
        base.append(first(f"{model.base_url}/chat/completions", "x", directly, b'"content": "So"'))
        against.append(first(messages, token, body, b"event: delta"))
    assert compare("first word: from the model, through Strata", base, against, 2) <= 2
