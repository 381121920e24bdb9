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
class Told:
    """What one of many was answered: the status, and the ids of what was made."""

    status: int
    ids: tuple[str | None, ...] = ()


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(default=lambda asked: Answer("On 3 March, at nine.", delay=0.02)) as server:
        yield server


@pytest.fixture(scope="module")
def strata(tmp_path_factory, model) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("strata-keys"), model) as made:
        yield made


@pytest.fixture(scope="module")
def webs(strata) -> Iterator[list[Web]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Web(strata)) for _ in range(2)]


@pytest.fixture(scope="module")
def api(strata, webs) -> Api:
    return Api(webs[0].url, strata.token)


def made_of(accept: str, answer: str) -> tuple[str | None, ...]:
    """The ids in an answer: of the message and its reply, or of the one thing that was made."""
    if accept == EVENTS:
        blocks = [block.partition("\ndata: ") for block in answer.split("\n\n")]
        ends = ("event: message", "event: done")
        return tuple(json.loads(data)["id"] for head, _, data in blocks if head.startswith(ends))
    told = json.loads(answer)
    if "message" in told:
        return told["message"]["id"], told["reply"] and told["reply"]["id"]
    return (told["id"],)


@dataclass(frozen=True)
class Wish:
    """A request, to be sent with one key."""

    path: str
    body: object
    accept: str
    key: str
    token: str

    def send(self, web: Web) -> Told:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": self.accept,
            "Content-Type": JSON,
            "Idempotency-Key": self.key,
        }
        body = json.dumps(self.body).encode()
        asked = Request(f"{web.url}/api/v1/{self.path}", body, headers, method="POST")
        try:
            with urlopen(asked, timeout=120) as answer:
                return Told(answer.status, made_of(self.accept, answer.read().decode()))
        except HTTPError as error:
            told = error.read().decode()
            assert error.code == 409 and error.headers["Retry-After"] == "1", told
            return Told(409)


def all_at_once(webs: list[Web], wish: Wish) -> list[Told]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(wish.send, [webs[one % len(webs)] for one in range(AT_ONCE)]))


def everything(api: Api, path: str) -> list[dict]:
    found, page = [], api.call("GET", path)
    while True:
        found += page["results"]
        if not page["next"]:
            return found
        page = api.call("GET", page["next"])


def test_a_hundred_at_once_have_one_effect_that_outlives_the_server(webs, api, model, scale, tally):
    rounds = scale(50, 2)
    slug = api.call("POST", "projects/", {"name": "Once"})["slug"]
    here = f"projects/{slug}"
    place = api.call("POST", f"{here}/sessions/", {"title": "Torture"})["id"]
    said = f"sessions/{place}/messages/"
    ways = [
        (said, {"content": "When is the cutover?"}, JSON, said),
        (said, {"content": "When is the cutover?"}, EVENTS, said),
        (f"{here}/sessions/", {"title": "Once"}, JSON, f"{here}/sessions/"),
        (f"{here}/notes/", {"text": "The key is under the mat."}, JSON, f"{here}/notes/"),
    ]
    first_answers = []
    for number in range(rounds):
        path, body, accept, listed = ways[number % len(ways)]
        wish = Wish(path, body, accept, str(uuid4()), api.token)
        before, asked = len(everything(api, listed)), len(model.requests)
        told = all_at_once(webs, wish)
        for status, count in Counter(one.status for one in told).items():
            tally(f"answers {status}", count)
        made = {one.ids for one in told if one.status != 409}
        assert len(made) == 1, made
        [ids] = made
        there = {one["id"] for one in everything(api, listed)}
        assert set(ids) <= there
        assert len(there) - before == len(ids)
        calls = len(model.requests) - asked
        assert calls == (1 if path == said else 0)
        first_answers.append((wish, ids))
        tally("rounds with one effect")

    for web in webs:
        web.kill()
        web.start()
    for wish, ids in first_answers:
        assert wish.send(webs[0]).ids == ids
        tally("first answers told again after a restart")
    assert len(everything(api, said)) == 2 * sum(wish.path == said for wish, _ in first_answers)


def test_a_server_killed_while_a_hundred_ask_leaves_one_effect_or_none(
    webs, api, scale, tally, chance
):
    slug = api.call("POST", "projects/", {"name": "Killed"})["slug"]
    path = f"projects/{slug}/sessions/"
    for kill in range(scale(20, 2)):
        body = {"title": f"Session {kill}"}
        wish = Wish(path, body, JSON, str(uuid4()), api.token)
        kill_while_all_ask(webs, wish, chance.uniform(0, 0.6))
        found = [one for one in everything(api, path) if one["title"] == body["title"]]
        assert len(found) <= 1
        tally(f"kills that left {len(found)}")
        again = wish.send(webs[0])
        assert again.status == 201
        there = [one["id"] for one in everything(api, path) if one["title"] == body["title"]]
        assert there == list(again.ids)
        assert not found or found[0]["id"] == there[0]


def kill_while_all_ask(webs: list[Web], wish: Wish, after: float) -> None:
    """Kills the web processes some seconds after all began to ask, and starts them again."""

    def send(web: Web) -> None:
        try:
            wish.send(web)
        except (OSError, HTTPException):
            return

    with ThreadPoolExecutor(AT_ONCE) as pool:
        asking = [pool.submit(send, webs[one % len(webs)]) for one in range(AT_ONCE)]
        time.sleep(after)
        for web in webs:
            web.kill()
        for one in asking:
            one.result()
    for web in webs:
        web.start()
