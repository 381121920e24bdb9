"""Readers that disconnect and a web process that dies while replies stream."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPException
from threading import Thread
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import psycopg
import pytest
from psycopg.rows import dict_row

from tests.scripted import Answer, ScriptedModel
from tests.server import Installation, Web, installed
from tests.torture.clients import EVENTS, JSON, Api, Client
from tests.torture.monitored_web import TASKS

# A thread that fails fails its test.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

WEB = "tests.torture.monitored_web:application"
# Under this name the web process is known to the database.
NAME = "strata-torture-web"
WORDS = 40
WHOLE = " ".join(f"word{number}" for number in range(WORDS))
PAUSE = 0.12  # seconds before each word
UNFINISHED = ("pending", "streaming")
SWEEP = "from chat.streaming import live_replies; print(live_replies.sweep_interrupted())"
# Seconds: a growing reply is written once a second, and the machine may be slow.
FLUSHED = 1.0 + 1.5


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """Speaks slowly, except to who asks for something quick."""

    def speak(questions) -> Answer:
        quick = "quick" in questions["messages"][-1]["content"]
        return Answer("Quickly said.") if quick else Answer(WHOLE, delay=PAUSE)

    with ScriptedModel(default=speak) as server:
        yield server


@pytest.fixture(scope="module")
def strata(tmp_path_factory, model) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("strata-torture"), model) as installation:
        yield installation


@pytest.fixture(scope="module")
def web(strata) -> Iterator[Web]:
    with Web(strata, WEB, PGAPPNAME=NAME) as running:
        yield running


@pytest.fixture
def database(strata) -> Iterator[psycopg.Connection]:
    from config.postgres import server as embedded

    host = str(embedded.socket_directory(strata.data_dir))
    with psycopg.connect(
        host=host, user="postgres", dbname="postgres", autocommit=True, row_factory=dict_row
    ) as connection:
        yield connection


@pytest.fixture(scope="module")
def api(strata, web) -> Api:
    return Api(web.url, strata.token)


@pytest.fixture
def sessions(api, request):
    """Makes so many new sessions in a project of this test's own."""
    name = request.node.name[:50]

    def make(number: int) -> list[str]:
        slug = api.call("POST", "projects/", {"name": name})["slug"]
        path = f"projects/{slug}/sessions/"
        return [api.call("POST", path, {"title": "Torture"})["id"] for _ in range(number)]

    return make


def tasks(web: Web) -> Counter[str]:
    """What the server's event loop has to do, by the name of the coroutine."""
    with urlopen(web.url + TASKS, timeout=10) as answer:
        return Counter(json.loads(answer.read()))


def open_sockets(web: Web) -> int:
    """Connections of clients that the server still holds."""
    connections = psutil.Process(web.pid).net_connections(kind="tcp")
    return sum(
        connection.status != psutil.CONN_LISTEN and connection.laddr.port == web.port
        for connection in connections
    )


def unfinished(database: psycopg.Connection) -> int:
    rows = database.execute(
        "SELECT count(*) FROM chat_message WHERE status IN ('pending', 'streaming')"
    )
    return rows.fetchone()["count"]


def eventually(condition, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)
    return True


def leaked_connections(database: psycopg.Connection, api: Api) -> list[dict]:
    """The server's database connections that no request gets to use any more.

    The pool hands them out in turn: those that are in it are used by some of many requests.
    """
    backends = "FROM pg_stat_activity WHERE application_name = %s"
    began = database.execute("SELECT clock_timestamp() AS now").fetchone()["now"]
    known = database.execute(f"SELECT count(*) {backends}", [NAME]).fetchone()["count"]
    for _ in range(3 * known + 5):
        api.call("GET", "projects/")
    return database.execute(
        f"SELECT pid, state, query {backends} AND (query_start < %s OR state <> 'idle')",
        [NAME, began],
    ).fetchall()


def random_client(chance, session: str, number: int) -> Client:
    """One of the ways to leave; one in eight stays to the end."""
    client = Client(session, f"Question {number}?", aborts=chance.random() < 0.5)
    client.accept = JSON if chance.random() < 0.25 else EVENTS
    way = chance.randrange(8)
    if way == 0:
        return client
    if way == 1:
        client.half = chance.random() < 0.5
        client.events = 0
    elif way < 5 and client.accept == EVENTS:
        client.events = chance.randint(1, WORDS)
    elif way == 5:
        client.seconds = chance.uniform(0, 0.3)
    else:
        client.seconds = chance.uniform(0, 1.2 * WORDS * PAUSE)
    return client


def way_out(client: Client) -> str:
    if client.half:
        return "clients that left within their request"
    if client.end is not None:
        return "clients that heard the end"
    if client.words:
        return "clients that left after some words"
    if client.message is not None:
        return "clients that left before the first word"
    return "clients that left before any answer"


async def all_of_them(clients: list[Client], api: Api, chance, seconds: float) -> None:
    """Runs the clients, which begin at random moments of so many seconds."""

    async def later(client: Client, pause: float) -> None:
        await asyncio.sleep(pause)
        await client.run(api.url, api.token)

    await asyncio.gather(*(later(client, chance.uniform(0, seconds)) for client in clients))


def test_every_reply_ends_and_nothing_leaks_when_readers_leave(
    web, api, sessions, database, scale, tally, chance
):
    number = scale(200, 15)
    places = sessions(max(3, number // 5))
    # What the first reply leaves behind for good is there before.
    quick = Client(places[0], "Something quick?")
    asyncio.run(quick.run(api.url, api.token))
    assert quick.end is not None and quick.end["status"] == "complete"
    time.sleep(3)
    before = tasks(web)

    clients = [random_client(chance, chance.choice(places), index) for index in range(number)]
    asyncio.run(all_of_them(clients, api, chance, number * 0.06))
    settled = eventually(lambda: not unfinished(database), 60 + number * 0.3)
    for client in clients:
        tally(way_out(client))

    messages_by_session = {place: api.messages(place) for place in places}
    replies = [
        row for rows in messages_by_session.values() for row in rows if row["role"] == "assistant"
    ]
    statuses = Counter(reply["status"] for reply in replies)
    for status, count in statuses.items():
        tally(f"replies {status}", count)
    assert settled, f"Replies are left as they were: {statuses}"
    assert set(statuses) == {"complete"}
    for client in clients:
        check_received(client, messages_by_session[client.session])
    for messages in messages_by_session.values():
        check_path(messages)

    assert eventually(lambda: not tasks(web) - before, 20), tasks(web) - before
    assert eventually(lambda: open_sockets(web) == 0, 20), open_sockets(web)
    assert leaked_connections(database, api) == []
    tally("tasks left over", sum((tasks(web) - before).values()))


def check_received(client: Client, rows: list[dict]) -> None:
    """Whether what the client was told is so; what it was not told of is there whole or not."""
    questions = [row for row in rows if row["content"] == client.content]
    assert len(questions) <= 1
    if client.half:
        assert not questions
    if client.message is None and not questions:
        return
    [question] = questions
    if client.message is not None:
        assert question["id"] == client.message["id"]
    [reply] = [row for row in rows if row["parent"] == question["id"] and row["role"] != "user"]
    assert reply["content"] == WHOLE
    assert WHOLE.startswith(client.received_text)
    if client.end is not None:
        assert (client.end["id"], client.end["content"]) == (reply["id"], WHOLE)


def check_path(rows: list[dict]) -> None:
    """Whether the places have no gap and each message follows the one before it."""
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["parent"] for row in rows] == [None, *(row["id"] for row in rows[:-1])][: len(rows)]


class Recorder(Thread):
    """Writes down what was said elsewhere and edits it, as fast as it can, until the server dies.

    `kept` is what was acknowledged, by message: version and text.
    """

    def __init__(self, api: Api, session: str, name: str) -> None:
        super().__init__(daemon=True)
        self._api, self._session, self._name = api, session, name
        self.acknowledged: dict[str, tuple[int, str]] = {}
        # What was being written when the server died: it may be there or not.
        self.open: tuple[str, int, str] | None = None

    def run(self) -> None:
        path = f"sessions/{self._session}/messages/"
        try:
            for number in range(100_000):
                text = f"{self._name} note {number}"
                payload = self._api.call("POST", path, {"content": text, "reply": False})["message"]
                self.acknowledged[payload["id"]] = (1, text)
                changed = f"{text}, corrected"
                self.open = (payload["id"], 2, changed)
                self._api.call(
                    "PATCH", f"messages/{payload['id']}/", {"content": changed}, **IF_FIRST
                )
                self.acknowledged[payload["id"]] = (2, changed)
                self.open = None
        except (URLError, OSError, HTTPException):
            return


IF_FIRST = {"If-Match": '"1"'}


def test_a_killed_web_process_loses_no_acknowledged_word(
    strata, web, api, sessions, database, scale, tally, chance
):
    kills, talkers = scale(30, 2), 4
    *places, notebook = sessions(talkers + 1)
    acknowledged: dict[str, tuple[int, str]] = {}
    for kill in range(kills):
        clients = [
            Client(place, f"Question {kill} in {number}?") for number, place in enumerate(places)
        ]
        recorder = Recorder(api, notebook, f"Round {kill}")
        talk = Thread(
            target=lambda: asyncio.run(all_of_them(clients, api, chance, 1.0)),  # noqa: B023
            daemon=True,
        )
        recorder.start()
        talk.start()
        time.sleep(chance.uniform(0.2, 1.1 * WORDS * PAUSE))
        killed_at = time.monotonic()
        web.kill()
        talk.join(20)
        recorder.join(20)
        assert not talk.is_alive() and not recorder.is_alive()
        tally("kills of the web process")

        cut = {
            row["id"]: row
            for row in database.execute(
                "SELECT id::text, status, text FROM chat_message WHERE status = ANY(%s)",
                [list(UNFINISHED)],
            )
        }
        web.start()
        # As time passes: after streams.SILENCE the sweep takes their process for dead.
        database.execute(
            "UPDATE chat_message SET heartbeat_at = now() - interval '1 minute'"
            " WHERE status = ANY(%s)",
            [list(UNFINISHED)],
        )
        assert strata.manage("shell", "--verbosity=0", "-c", SWEEP) == str(len(cut))
        assert unfinished(database) == 0

        for client in clients:
            messages = api.messages(client.session)
            check_path(messages)
            check_stored(client, messages, killed_at, cut, tally)
        acknowledged |= recorder.acknowledged
        tally(
            "notes and corrections acknowledged", sum(v for v, _ in recorder.acknowledged.values())
        )
        check_notes(api.messages(notebook), acknowledged, recorder.open)
        for place in places:
            payload = api.call("POST", f"sessions/{place}/messages/", {"content": "Be quick."})
            assert (payload["reply"]["status"], payload["reply"]["content"]) == (
                "complete",
                "Quickly said.",
            )


def check_stored(client: Client, rows: list[dict], killed_at: float, cut: dict, tally) -> None:
    """Whether what the client was told of is there, and the words that it heard."""
    questions = [row for row in rows if row["content"] == client.content]
    if client.message is None and not questions:
        tally("questions cut off before they were acknowledged")
        return
    [question] = questions
    replies = [row for row in rows if row["parent"] == question["id"] and row["role"] != "user"]
    [reply] = replies
    if reply["id"] in cut:
        assert reply["status"] == "interrupted"
        assert reply["error"]
        assert reply["content"] == cut[reply["id"]]["text"]
        assert WHOLE.startswith(reply["content"])
        assert reply["content"].startswith(client.received_by(killed_at - FLUSHED))
        label = (
            "mid-stream, text kept" if reply["content"] else "before their first word was written"
        )
        tally(f"replies cut off {label}")
    else:
        assert (reply["status"], reply["content"]) == ("complete", WHOLE)
        tally("replies complete before the kill")
    if client.end is not None:
        assert client.end["status"] == "complete" and reply["id"] not in cut


def check_notes(
    rows: list[dict], acknowledged: dict, under_way: tuple[str, int, str] | None
) -> None:
    """Whether every note and correction that was acknowledged is there, as it was."""
    check_path(rows)
    stored_by_id = {row["id"]: (row["version"], row["content"]) for row in rows}
    if under_way is not None and under_way[0] in stored_by_id:
        ident, version, text = under_way
        assert stored_by_id[ident] in (acknowledged[ident], (version, text))
        acknowledged[ident] = stored_by_id[ident]
    assert {ident: stored_by_id.get(ident) for ident in acknowledged} == acknowledged


def test_a_kill_between_two_lookups_leaves_what_was_looked_up(
    strata, web, api, sessions, database, model
):
    """A process dies while the model has the result of a first lookup and is silent."""
    [place] = sessions(1)
    slug = api.call("GET", f"sessions/{place}/")["project"]
    api.call("POST", f"projects/{slug}/notes/", {"text": "The otter pond freezes in March."})
    strata.manage("reindex", f"--project={slug}")
    model.call(("1", "search_memory", '{"query": "otter pond"}'), text="I will look.")
    model.hang()
    asking = Thread(target=ask_in_vain, args=(api, place), daemon=True)
    asking.start()
    while "tool" not in [message["role"] for message in last_messages(model)]:
        time.sleep(0.05)
    time.sleep(FLUSHED)
    web.kill()
    asking.join(20)
    model.reset()
    web.start()
    database.execute(
        "UPDATE chat_message SET heartbeat_at = now() - interval '1 minute' WHERE status = ANY(%s)",
        [list(UNFINISHED)],
    )
    assert strata.manage("shell", "--verbosity=0", "-c", SWEEP) == "1"
    question, reply = api.messages(place)
    assert (reply["status"], reply["content"]) == ("interrupted", "I will look.")
    assert "server was stopped" in reply["error"]
    assert [(it["tool"], it["result_count"]) for it in reply["lookups"]] == [("search_memory", 1)]
    receipt = api.call("GET", f"messages/{reply['id']}/receipt/")
    assert receipt["sections"][-1]["items"][0]["kind"] == "chunk"
    # It can be tried again.
    model.say("In March.")
    again = api.call("POST", f"messages/{reply['id']}/regenerate/")["reply"]
    assert (again["status"], again["content"]) == ("complete", "In March.")


def last_messages(model: ScriptedModel) -> list[dict]:
    return model.requests[-1]["messages"] if model.requests else []


def ask_in_vain(api: Api, session: str) -> None:
    try:
        api.call("POST", f"sessions/{session}/messages/", {"content": "And then?"})
    except (URLError, OSError, HTTPException):
        return
    raise AssertionError("The process answered, although it was killed.")
