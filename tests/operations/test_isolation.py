"""Hostile webhook targets and a long import in one project do not delay summaries in another."""

import json
from collections.abc import Iterator

import httpx2
import pytest

from tests.receiver import Receiver, Reply
from tests.scripted import ScriptedModel
from tests.server import installed
from tests.torture.clients import Api
from tests.torture.running_strata import LONG_AGO, Whole, eventually, everything

# The most that a project may have, each of which keeps a worker busy until its time-out.
WEBHOOKS = 20
IMPORTED_MESSAGES = 5_000
SUMMARY_S = 60


@pytest.fixture
def strata(tmp_path) -> Iterator[Whole]:
    with (
        ScriptedModel() as model,
        installed(tmp_path, model) as installation,
        Whole(installation) as running,
    ):
        yield running


@pytest.fixture
def hanging() -> Iterator[Receiver]:
    with Receiver() as receiver:
        receiver.reply = Reply(delay=60)
        yield receiver


def project(api: Api, slug: str) -> str:
    """Make a project with a chat; return the chat's path."""
    api.call("POST", "projects/", {"name": slug, "slug": slug})
    payload = api.call("POST", f"projects/{slug}/sessions/", {"title": slug})
    return f"sessions/{payload['id']}/"


def say(api: Api, session: str) -> None:
    body = {"content": "The cutover is in March.", "reply": False, "created_at": LONG_AGO}
    api.call("POST", f"{session}messages/", body)


def start_import(strata: Whole, api: Api, slug: str) -> None:
    lines = (
        json.dumps({"role": "user", "content": f"Word {number} " * 40, "session": "long"})
        for number in range(IMPORTED_MESSAGES)
    )
    httpx2.post(
        f"{strata.url}/api/v1/projects/{slug}/imports/",
        files={"file": ("long.jsonl", "\n".join(lines).encode())},
        headers={"Authorization": f"Bearer {api.token}"},
        timeout=60,
    ).raise_for_status()


def test_a_summary_waits_neither_for_webhooks_nor_for_an_import(strata, hanging):
    api = Api(strata.url, strata.installation.token)
    hostile, other = project(api, "hostile"), project(api, "other")
    for number in range(WEBHOOKS):
        hook = {"url": f"{hanging.url}/{number}", "events": ["message.posted"]}
        api.call("POST", "projects/hostile/webhooks/", hook)
    say(api, hostile)
    start_import(strata, api, "hostile")
    assert eventually(lambda: len(hanging.requests) >= 2, 60) is not None
    say(api, other)
    api.call("POST", f"{other}summarize/")
    path = "projects/other/memory/entries/?granularity=conversation"
    took = eventually(lambda: bool(everything(api, path)), SUMMARY_S)
    print(f"the summary took {took} s, with {len(hanging.requests)} deliveries under way")
    assert took is not None
    assert len(hanging.requests) < WEBHOOKS
