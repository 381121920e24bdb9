"""A hundred at once with one key, at two web processes: one effect, and it outlives them."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest

from tests.scripted import Answer, ScriptedModel
from tests.server import Installation, Web, installed
from tests.torture.clients import EVENTS, JSON, Api

AT_ONCE = 100


@dataclass(frozen=True)
class Outcome:
    """What one of many was answered: the status, and the ids of what was made."""

    status: int
    ids: tuple[str | None, ...] = ()


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(
        default=lambda request: Answer("On 3 March, at nine.", delay=0.02)
    ) as server:
        yield server


@pytest.fixture(scope="module")
def strata(tmp_path_factory, model) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("strata-keys"), model) as installation:
        yield installation


@pytest.fixture(scope="module")
def webs(strata) -> Iterator[list[Web]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Web(strata)) for _ in range(2)]


@pytest.fixture(scope="module")
def api(strata, webs) -> Api:
    return Api(webs[0].url, strata.token)


def ids_in(accept: str, answer: str) -> tuple[str | None, ...]:
    """The ids in an answer: of the message and its reply, or of the one thing that was made."""
    if accept == EVENTS:
        blocks = [block.partition("\ndata: ") for block in answer.split("\n\n")]
        ends = ("event: message", "event: done")
        return tuple(json.loads(data)["id"] for head, _, data in blocks if head.startswith(ends))
    payload = json.loads(answer)
    if "message" in payload:
        return payload["message"]["id"], payload["reply"] and payload["reply"]["id"]
    return (payload["id"],)


@dataclass(frozen=True)
class Wish:
    """A request, to be sent with one key."""

    path: str
    body: object
    accept: str
    key: str
    token: str

    def send(self, web: Web) -> Outcome:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": self.accept,
            "Content-Type": JSON,
            "Idempotency-Key": self.key,
        }
        body = json.dumps(self.body).encode()
        http_request = Request(f"{web.url}/api/v1/{self.path}", body, headers, method="POST")
        try:
            with urlopen(http_request, timeout=120) as answer:
                return Outcome(answer.status, ids_in(self.accept, answer.read().decode()))
        except HTTPError as error:
            body_text = error.read().decode()
            assert error.code == 409 and error.headers["Retry-After"] == "1", body_text
            return Outcome(409)


def all_at_once(webs: list[Web], wish: Wish) -> list[Outcome]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(wish.send, [webs[number % len(webs)] for number in range(AT_ONCE)]))


def everything(api: Api, path: str) -> list[dict]:
    rows, page = [], api.call("GET", path)
    while True:
        rows += page["results"]
        if not page["next"]:
            return rows
        page = api.call("GET", page["next"])


def test_a_hundred_at_once_have_one_effect_that_outlives_the_server(webs, api, model, scale, tally):
    rounds = scale(50, 2)
    slug = api.call("POST", "projects/", {"name": "Once"})["slug"]
    project_url = f"projects/{slug}"
    place = api.call("POST", f"{project_url}/sessions/", {"title": "Torture"})["id"]
    messages_url = f"sessions/{place}/messages/"
    ways = [
        (messages_url, {"content": "When is the cutover?"}, JSON, messages_url),
        (messages_url, {"content": "When is the cutover?"}, EVENTS, messages_url),
        (f"{project_url}/sessions/", {"title": "Once"}, JSON, f"{project_url}/sessions/"),
        (
            f"{project_url}/notes/",
            {"text": "The key is under the mat."},
            JSON,
            f"{project_url}/notes/",
        ),
    ]
    first_answers = []
    for number in range(rounds):
        path, body, accept, listed = ways[number % len(ways)]
        wish = Wish(path, body, accept, str(uuid4()), api.token)
        before, request_count = len(everything(api, listed)), len(model.requests)
        results = all_at_once(webs, wish)
        for status, count in Counter(result.status for result in results).items():
            tally(f"answers {status}", count)
        created_ids = {result.ids for result in results if result.status != 409}
        assert len(created_ids) == 1, created_ids
        [ids] = created_ids
        stored_ids = {row["id"] for row in everything(api, listed)}
        assert set(ids) <= stored_ids
        assert len(stored_ids) - before == len(ids)
        calls = len(model.requests) - request_count
        assert calls == (1 if path == messages_url else 0)
        first_answers.append((wish, ids))
        tally("rounds with one effect")

    for web in webs:
        web.kill()
        web.start()
    for wish, ids in first_answers:
        assert wish.send(webs[0]).ids == ids
        tally("first answers told again after a restart")
    assert len(everything(api, messages_url)) == 2 * sum(
        wish.path == messages_url for wish, _ in first_answers
    )


def test_a_server_killed_while_a_hundred_ask_leaves_one_effect_or_none(
    webs, api, scale, tally, chance
):
    slug = api.call("POST", "projects/", {"name": "Killed"})["slug"]
    path = f"projects/{slug}/sessions/"
    for kill in range(scale(20, 2)):
        body = {"title": f"Session {kill}"}
        wish = Wish(path, body, JSON, str(uuid4()), api.token)
        kill_while_all_ask(webs, wish, chance.uniform(0, 0.6))
        rows = [row for row in everything(api, path) if row["title"] == body["title"]]
        assert len(rows) <= 1
        tally(f"kills that left {len(rows)}")
        response = wish.send(webs[0])
        assert response.status == 201
        stored_ids = [row["id"] for row in everything(api, path) if row["title"] == body["title"]]
        assert stored_ids == list(response.ids)
        assert not rows or rows[0]["id"] == stored_ids[0]


def kill_while_all_ask(webs: list[Web], wish: Wish, after: float) -> None:
    """Kills the web processes some seconds after all began to ask, and starts them again."""

    def send(web: Web) -> None:
        try:
            wish.send(web)
        except (OSError, HTTPException):
            return

    with ThreadPoolExecutor(AT_ONCE) as pool:
        request_futures = [pool.submit(send, webs[number % len(webs)]) for number in range(AT_ONCE)]
        time.sleep(after)
        for web in webs:
            web.kill()
        for request_future in request_futures:
            request_future.result()
    for web in webs:
        web.start()
