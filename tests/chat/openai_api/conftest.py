"""A running Strata for OpenAI's own client, and the REST API to look behind it. No ORM here."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from openai import AsyncOpenAI, OpenAI

from tests.scripted import ScriptedModel
from tests.server import Web, installed


@dataclass(frozen=True)
class Strata:
    """`token` opens everything for `admin`; `manage` runs a command of manage.py beside it."""

    url: str
    model: ScriptedModel
    token: str
    manage: Callable[..., str]
    log: Callable[[], str]

    def rest(self, method: str, path: str, body: object = None, token: str = "") -> Any:
        headers = {
            "Authorization": f"Bearer {token or self.token}",
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        http_request = Request(f"{self.url}/api/v1/{path}", data, headers, method=method)
        with urlopen(http_request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def project(self, **fields: object) -> str:
        """The slug of a new project of `admin`."""
        name = f"Billing {uuid4().hex[:8]}"
        return self.rest("POST", "projects/", {"name": name} | fields)["slug"]

    def sessions(self, slug: str) -> list[dict]:
        return self.rest("GET", f"projects/{slug}/sessions/")["results"]

    def stored_turns(self, slug: str) -> list[tuple[str, str]]:
        """All that was said in the only session of a project: (role, text)."""
        [session] = self.sessions(slug)
        return [(message["role"], message["content"]) for message in self.messages(session)]

    def messages(self, session: dict) -> list[dict]:
        return self.rest("GET", f"sessions/{session['id']}/messages/")["results"]

    def client(self, token: str = "", session: str = "", **options: object) -> OpenAI:
        return OpenAI(**self._options(token, session, options))

    def async_client(self, token: str = "", session: str = "", **options: object) -> AsyncOpenAI:
        return AsyncOpenAI(**self._options(token, session, options))

    def _options(self, token: str, session: str, options: dict) -> dict[str, Any]:
        headers = {"X-Strata-Session": session} if session else {}
        return {
            "base_url": f"{self.url}/v1",
            "api_key": token or self.token,
            "default_headers": headers,
            "max_retries": 0,
        } | options

    @property
    def prompt_turns(self) -> list[tuple[str, str]]:
        """What the model was told last, without the front: (role, text)."""
        return [
            (message["role"], message.get("content") or "")
            for message in self.model.requests[-1]["messages"]
            if message["role"] != "system"
        ]

    @property
    def front(self) -> str:
        """What the model was told last before the first message."""
        return self.model.requests[-1]["messages"][0]["content"]


@pytest.fixture(scope="session")
def running(tmp_path_factory) -> Iterator[Strata]:
    data_dir = tmp_path_factory.mktemp("strata-completions")
    with (
        ScriptedModel() as model,
        installed(data_dir, model) as installation,
        Web(installation, STRATA_OUTBOUND_ALLOW="127.0.0.1/32") as web,
    ):
        token = installation.token
        yield Strata(web.url, model, token, installation.manage, web.log.read_text)


@pytest.fixture
def strata(running: Strata) -> Strata:
    """The running Strata, its model with nothing scripted."""
    running.model.reset()
    return running


@pytest.fixture
def slug(strata: Strata) -> str:
    return strata.project()


@pytest.fixture
def say(strata: Strata, slug: str) -> Callable:
    """Has `messages` (one text, or OpenAI's list) answered and returns the completion; keywords are
    the request's, `session` the header's.
    """

    def ask(messages, session: str = "", **fields):
        sent_messages = (
            [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        )
        client = strata.client(session=session)
        return client.chat.completions.create(model=slug, messages=sent_messages, **fields)

    return ask


@pytest.fixture
def user() -> Callable:
    return lambda text: {"role": "user", "content": text}


@pytest.fixture
def assistant() -> Callable:
    return lambda text: {"role": "assistant", "content": text}
