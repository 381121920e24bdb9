"""Spending limits are exact across processes, and a killed process leaves no reservation."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Event, Semaphore, Thread

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.scripted import Answer, Request, ScriptedModel
from tests.server import Installation, installed
from tests.torture.clients import Api, Client
from tests.torture.running_strata import Whole, eventually

# A thread that fails fails its test.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

SETTINGS = {
    "STRATA_SYSTEM_MODEL": "openai-chat:scripted",
    "STRATA_CONTEXT_TOKENS": "8000",
    "STRATA_FIRST_TOKEN_TIMEOUT": "600",
    "STRATA_MODEL_TIMEOUT": "900",
    "STRATA_RATE_REPLIES": "off",
    "STRATA_RATE_WRITES": "off",
    "STRATA_STREAMS_PER_USER": "1000",
}
PROCESSES = ("web-1", "web-2", "worker")
WORDS = 20
PAUSE_S = 0.15  # before each word
QUESTION = "Count, please."
# A chat with a title of its own makes no call for a title. A title that the model writes reserves
# more tokens than it takes: if it ends after a limit is set, a further, shorter reply fits.
OWN_TITLE = "Counting"
# Prompts of equal questions differ by a few tokens. Fewer than MIN_OUTPUT_TOKENS in all.
SLACK_TOKENS = 100
SWEEP = "from chat.tasks import sweep_interrupted; sweep_interrupted()"
# A call counts with its reservation or with its tokens, in one snapshot of the database.
COUNTED = """
    SELECT coalesce(sum(CASE WHEN outcome = '' AND reserved_until > now()
                             THEN reserved_tokens ELSE input_tokens + output_tokens END), 0) AS used
    FROM memory_call
"""
RESERVED = "SELECT count(*) AS n FROM memory_call WHERE outcome = '' AND reserved_until > now()"


class Gate:
    """The answers of the model, which come word by word or, while it is shut, only when it is
    opened. `replies` is the number of requests for replies.
    """

    def __init__(self) -> None:
        self.replies = 0
        self.permits: Semaphore | None = None

    def __call__(self, request: Request) -> Answer:
        first = request["messages"][0]["content"]  # type: ignore[index]
        if str(first).startswith("Write a title"):
            return Answer("Counting", delay=PAUSE_S)
        self.replies += 1
        text = " ".join(f"word{number}" for number in range(WORDS))
        return Answer(text, 0 if self.permits else PAUSE_S, permits=self.permits)

    def shut(self) -> None:
        self.replies, self.permits = 0, Semaphore(0)

    def open(self) -> None:
        assert self.permits is not None
        self.permits.release(100_000)
        self.permits = None


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def installation(tmp_path_factory, gate) -> Iterator[Installation]:
    with (
        ScriptedModel(default=gate) as model,
        installed(tmp_path_factory.mktemp("strata-limits"), model) as installation,
    ):
        yield installation


@pytest.fixture(scope="module")
def strata(installation) -> Iterator[Whole]:
    with Whole(installation, **SETTINGS) as running:
        yield running


@pytest.fixture
def database(installation, strata) -> Iterator[psycopg.Connection]:
    from config.postgres import server

    host = str(server.socket_directory(installation.data_dir))
    with psycopg.connect(
        host=host, user="postgres", dbname="postgres", autocommit=True, row_factory=dict_row
    ) as connection:
        yield connection


class Project:
    """A project with a limit, whose owner asks many questions at once."""

    def __init__(self, strata: Whole, database: psycopg.Connection, slug: str) -> None:
        self.api = Api(strata.url, strata.installation.token)
        self.slug, self._database = slug, database
        self.api.call("POST", "projects/", {"name": slug, "slug": slug})
        self.set_limit(10**9)
        database.execute("DELETE FROM memory_call")
        [first] = self.ask(1, title=OWN_TITLE)
        assert first.end is not None and first.end["status"] == "complete"
        assert eventually(lambda: self.reservations() == 0, 30) is not None
        [row] = database.execute(
            "SELECT reserved_tokens FROM memory_call WHERE kind = 'reply'"
        ).fetchall()
        self.tokens_of_reply = row["reserved_tokens"]

    def set_limit(self, tokens: int) -> None:
        self.api.call("PUT", f"projects/{self.slug}/limits/", {"tokens_per_month": tokens})

    def allow(self, replies: int) -> int:
        """Set the limit so that this number of replies may begin. Returns it in tokens."""
        limit = self.counted() + replies * self.tokens_of_reply + SLACK_TOKENS
        self.set_limit(limit)
        return limit

    def counted(self) -> int:
        row = self._database.execute(COUNTED).fetchone()
        assert row is not None
        return int(row["used"])

    def reservations(self) -> int:
        row = self._database.execute(RESERVED).fetchone()
        assert row is not None
        return row["n"]

    def clients(self, number: int, **session: str) -> list[Client]:
        path = f"projects/{self.slug}/sessions/"
        sessions = [self.api.call("POST", path, session)["id"] for _ in range(number)]
        return [Client(session, QUESTION) for session in sessions]

    def ask(self, number: int, **session: str) -> list[Client]:
        clients = self.clients(number, **session)
        self.run(clients)
        return clients

    def run(self, clients: list[Client]) -> None:
        async def all_at_once() -> None:
            await asyncio.gather(*(it.run(self.api.url, self.api.token) for it in clients))

        asyncio.run(all_at_once())


def outcome(client: Client) -> str:
    if client.end is None:
        return "cut off by a kill"
    if "detail" not in client.end:
        return client.end["status"]
    return "refused" if "limit of this project" in client.end["detail"] else client.end["detail"]


def test_replies_of_all_processes_together_stay_within_a_limit(
    strata, database, gate, scale, tally
):
    number, allowed = scale(200, 12), scale(50, 3)
    project = Project(strata, database, "crowd")
    clients = project.clients(number, title=OWN_TITLE)
    limit = project.allow(allowed)
    gate.shut()
    crowd = Thread(target=project.run, args=(clients,), daemon=True)
    crowd.start()
    try:
        refused = eventually(
            lambda: sum(client.end is not None for client in clients) >= number - allowed,
            scale(600, 120),
        )
        most = project.counted()
        state = f"{gate.replies} of {allowed} replies, {most} of {limit} tokens"
        assert refused is not None, f"{Counter(map(outcome, clients))}, {state}"
    finally:
        gate.open()
        crowd.join(120)
    assert not crowd.is_alive()
    assert gate.replies == allowed, state
    assert Counter(map(outcome, clients)) == {"complete": allowed, "refused": number - allowed}
    assert most <= limit, state
    assert project.reservations() == 0
    tally("replies at once", number)
    tally("replies that reached the model", gate.replies)


class Watch(Thread):
    """Counts again and again what is used and reserved, until the end of the block."""

    def __init__(self, installation: Installation) -> None:
        from config.postgres import server

        super().__init__(daemon=True)
        self._host = str(server.socket_directory(installation.data_dir))
        self._over = Event()
        self.most = self.counts = 0

    def __enter__(self) -> "Watch":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        with psycopg.connect(host=self._host, user="postgres", dbname="postgres") as connection:
            connection.autocommit = True
            while not self._over.wait(0.05):
                [used] = connection.execute(COUNTED).fetchone() or [0]
                self.most, self.counts = max(self.most, int(used)), self.counts + 1


def test_killed_processes_leave_no_reservation(
    installation, strata, database, gate, scale, tally, chance
):
    kills, allowed = scale(30, 3), scale(8, 3)
    project = Project(strata, database, "kills")
    for kill in range(kills):
        clients = project.clients(2 * allowed)
        limit = project.allow(allowed)
        talk = Thread(target=project.run, args=(clients,), daemon=True)
        with Watch(installation) as watch:
            talk.start()
            time.sleep(chance.uniform(0.2, 1.3 * WORDS * PAUSE_S))
            # At random instants, but each kind of process is among those that are killed.
            name = PROCESSES[kill % len(PROCESSES)]
            os.kill(strata.children(PROCESSES)[name], signal.SIGKILL)
            tally(f"kills of {name}")
            talk.join(60)
        assert not talk.is_alive()
        assert watch.counts > 0 and watch.most <= limit, (watch.counts, watch.most, limit)
        for result, count in Counter(map(outcome, clients)).items():
            tally(f"replies {result}", count)
        assert strata.recovers() is not None, strata.log.read_text()
        release(project, database, installation, tally)
    # Titles that still wait for the worker would share the limit with the replies.
    database.execute("UPDATE chat_session SET title_by_hand = true")
    assert eventually(lambda: project.reservations() == 0, 60) is not None
    # Nothing is held back: all that the limit allows may begin.
    clients = project.clients(allowed, title=OWN_TITLE)
    project.allow(allowed)
    project.run(clients)
    assert Counter(map(outcome, clients)) == {"complete": allowed}


def release(
    project: Project, database: psycopg.Connection, installation: Installation, tally
) -> None:
    """Let the time pass after which processes count as dead, and check that Strata's own sweep ends
    their reservations.
    """
    # The other processes complete their replies meanwhile. The titles of these may still follow.
    eventually(lambda: project.reservations() == 0, 3)
    now = datetime.now(UTC)
    tally("reservations of killed processes", project.reservations())

    def swept() -> bool:
        database.execute(
            "UPDATE chat_message SET heartbeat_at = now() - interval '1 minute'"
            " WHERE status IN ('pending', 'streaming')"
        )
        database.execute("UPDATE memory_call SET reserved_until = now() WHERE outcome = ''")
        installation.manage("shell", "--verbosity=0", "-c", SWEEP)
        [left] = database.execute(
            "SELECT count(*) AS n FROM memory_call"
            " WHERE outcome = '' AND reserved_until IS NOT NULL AND started_at < %s",
            [now],
        ).fetchall()
        return left["n"] == 0

    # A process that lives, but is slow, renews its reservation until its reply ends.
    assert eventually(swept, 30) is not None
