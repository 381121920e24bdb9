"""Hundreds of stream readers: no errors, no growth, and pages keep responding."""

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median
from threading import Event, Thread
from urllib.request import OpenerDirector

import psutil
import psycopg
import pytest

from tests.load import readers
from tests.load.model_server import speaker
from tests.server import Installation, Web, installed, signed_in, worker
from tests.torture.clients import Api

# Connections that a process may have: those of its pool, and of the broker's.
POOL = 20
# Of what a page takes at its slowest twentieth while nobody reads.
SLOWER = 3
# Of the memory of a web process, from the second third of the time to the last.
GROWTH = 1.1
PAGES = ("", "overview/", "memory/", "memory/facts/", "search/?q=cutover")
# Seconds between two pages.
PAUSE = 0.2
# Said before in each chat.
MESSAGE_COUNT = 20


class Watch(Thread):
    """Looks once a second at the memory and the connections of web processes, until it is over:
    twice at least.
    """

    def __init__(self, webs: list[Web], database: str) -> None:
        super().__init__()
        self._webs = webs
        self._database = database
        self.over = Event()
        # By web process: bytes, and connections, at each look.
        self.memory: list[list[int]] = [[] for _ in webs]
        self.connections: list[list[int]] = [[] for _ in webs]

    def run(self) -> None:
        with psycopg.connect(self._database, autocommit=True) as connection:
            self._look(connection)
            while not self.over.wait(1):
                self._look(connection)
            self._look(connection)

    def _look(self, connection: psycopg.Connection) -> None:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        for number, web in enumerate(self._webs):
            self.memory[number].append(psutil.Process(web.pid).memory_info().rss)
            [connection_count] = connection.execute(count, [f"web-{number}"]).fetchone()
            self.connections[number].append(connection_count)


@pytest.fixture
def words(scale) -> int:
    return scale(400, 60)


@pytest.fixture
def strata(tmp_path_factory, words) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("strata-readers")
    with (
        speaker(words) as model,
        installed(folder, model) as session_ids,
        worker(session_ids, *WORKER, nice=NICE),
    ):
        yield session_ids


WORKER = ("--concurrency=2",)
# As the units of deploy/systemd have it, for all but pages.
NICE = 5


@pytest.fixture
def webs(strata) -> Iterator[list[Web]]:
    """Two that say replies, and one for pages: as deploy/proxy has it."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(Web(strata, nice=nice, PGAPPNAME=f"web-{number}"))
            for number, nice in enumerate([NICE, NICE, 0])
        ]


def chats(api: Api, number: int) -> list[str]:
    """So many chats of one project, each with something said in it."""
    slug = api.call("POST", "projects/", {"name": "Billing", "slug": "billing"})["slug"]
    session_ids = []
    for _ in range(number):
        session = api.call("POST", f"projects/{slug}/sessions/", {"title": "Builds"})["id"]
        for message_number in range(MESSAGE_COUNT):
            content = f"Build {message_number} takes {message_number} minutes."
            path = f"sessions/{session}/messages/"
            api.call("POST", path, {"content": content, "reply": False})
        session_ids.append(session)
    return session_ids


def pages(browser: OpenerDirector, url: str, session: str, until: float) -> list[float]:
    """Seconds that pages took, one after the other."""
    took = []
    paths = [f"/projects/billing/{path}" for path in PAGES]
    paths.append(f"/projects/billing/chats/{session}/")
    while time.monotonic() < until:
        for path in paths:
            began = time.perf_counter()
            with browser.open(url + path, timeout=60) as page:
                assert b"</html>" in page.read()
            took.append(time.perf_counter() - began)
            time.sleep(PAUSE)
    return took


def p95(seconds: list[float]) -> float:
    """By the nearest rank: on a slow machine there may be one page only."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]


def test_hundreds_read_along(strata, webs, words, scale, tally):
    people, listeners = scale((100, 4), (4, 2))
    seconds = scale(300, 6)
    api = Api(webs[0].url, strata.token)
    sessions = chats(api, people)
    *speakers, for_pages = webs
    browser = signed_in(for_pages, "admin")
    idle = pages(browser, for_pages.url, sessions[0], time.monotonic() + scale(60, 1))
    crowd = readers.Crowd(
        seconds=seconds,
        words=words,
        webs=[web.url for web in speakers],
        token=api.token,
        sessions=sessions,
        listeners=listeners,
        drops=0.01,
    )
    watch = Watch(webs, database(strata))
    reading = readers.start(crowd)
    watch.start()
    try:
        busy = pages(browser, for_pages.url, sessions[0], time.monotonic() + seconds)
        figures = readers.figures(reading)
    finally:
        watch.over.set()
        watch.join()
    times_by_load = {"idle": idle, "while they read": busy}
    for when, took in times_by_load.items():
        tally(f"milliseconds of the slowest twentieth of pages, {when}", round(p95(took) * 1000))
    tally("readers", people * (1 + listeners))
    tally("replies heard to their end", figures.replies)
    tally("times a reader lost the line", figures.dropped)
    tally("words heard a second", round(figures.words / seconds))
    tally("database connections of a web process, at most", max(map(max, watch.connections)))
    if figures.firsts:  # On a slow machine nobody may begin within the short time.
        tally("milliseconds to the first word, in the middle", round(median(figures.firsts) * 1000))
    growth = max(map(grown, watch.memory))
    tally(
        "MB of the largest web process at the end", round(max(m[-1] for m in watch.memory) / 2**20)
    )
    tally("percent by which it grew in the last third", round(100 * (growth - 1)))
    assert figures.wrong == []
    assert figures.replies >= people * (1 + listeners)
    assert max(map(max, watch.connections)) <= POOL
    assert growth <= scale(GROWTH, 2)
    assert p95(busy) <= scale(SLOWER, 1_000) * p95(idle)


def grown(looks: list[int]) -> float:
    """How many times as much there was in the last third of the time as in the one before."""
    third = max(1, len(looks) // 3)
    return median(looks[-third:]) / median(looks[-2 * third : -third])


def database(strata: Installation) -> str:
    """The address of the server itself, whatever stands before it."""
    from config.postgres import server

    return f"host={server.socket_directory(strata.data_dir)} user=postgres dbname=postgres"
