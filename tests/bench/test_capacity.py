"""Measure the load that this machine carries, and the part that saturates first."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.load import readers
from tests.load.model_server import Speaking, speaker
from tests.server import installed
from tests.torture.clients import Api
from tests.torture.running_strata import Whole, eventually, waiting

pytestmark = pytest.mark.timeout(1_800)

SLUG = "billing"
# So many people ask at once, again and again, and are answered with so many words.
PEOPLE = 60
WORDS = 300
SECONDS = 60
# What is asked of a machine is asked in so many hours of a day, and no more of its processors.
HOURS = 8
BUSY = 0.7
# The searched parts of a database are to fit into so much of the memory.
OF_MEMORY = 0.5
# What a session is, and a project's day: ten people with thirty questions each.
SESSION = 20
PROJECT = 600
# The parts of `up` by the beginnings of their processes' names. Beat runs in a worker.
PARTS = {"strata-web": "web", "strata-worker": "workers", "strata-heavy": "workers"}


@pytest.fixture
def model() -> Iterator[Speaking]:
    with speaker(WORDS) as speaking:
        yield speaking


@pytest.fixture
def strata(model, tmp_path) -> Iterator[Whole]:
    with installed(tmp_path, model) as installation, Whole(installation) as running:
        yield running


def spent(strata: Whole) -> dict[str, float]:
    """Seconds of processor that each part took since it began."""
    postmaster = int((strata.data_dir / "postgres/postmaster.pid").read_text().split("\n")[0])
    usage = {"database": sum(map(_seconds, _family(psutil.Process(postmaster))))}
    for child in psutil.Process(strata.pid).children():
        for beginning, part in PARTS.items():
            if child.name().startswith(beginning):
                usage[part] = usage.get(part, 0) + sum(map(_seconds, _family(child)))
    return usage


def _family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _seconds(process: psutil.Process) -> float:
    # Those of children that have ended count, too.
    return sum(process.cpu_times()[:4])


def sizes(data_dir: Path) -> tuple[int, int]:
    """Bytes of the database, and of what recall looks into."""
    from config.postgres import server

    where = f"host={server.socket_directory(data_dir)} user=postgres dbname=postgres"
    with psycopg.connect(where, autocommit=True) as connection:
        return connection.execute("""
            SELECT pg_database_size(current_database())::bigint,
                (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
                 WHERE relkind = 'r' AND relname LIKE 'memory_%')::bigint
        """).fetchone()


def test_capacity_of_one_machine(strata, report_figures):
    api = Api(strata.url, strata.installation.token)
    api.call("POST", "projects/", {"name": "Billing", "slug": SLUG, "idle_minutes": 1})
    sessions = [
        api.call("POST", f"projects/{SLUG}/sessions/", {"title": "Builds"})["id"]
        for _ in range(PEOPLE)
    ]
    crowd = readers.Crowd(SECONDS, WORDS, webs=[strata.url], token=api.token, sessions=sessions)
    before, empty = spent(strata), sizes(strata.data_dir)
    figures = readers.figures(readers.start(crowd))
    assert figures.wrong == []
    assert eventually(lambda: waiting(api, SLUG) == 0, 600) is not None
    after, full = spent(strata), sizes(strata.data_dir)
    messages = 2 * figures.replies
    cost = {part: (after[part] - before[part]) / messages for part in after}
    stored, searched = ((end - begin) / messages for begin, end in zip(empty, full, strict=True))
    for part, seconds in cost.items():
        report_figures(f"{part}: processor for each message", seconds * 1000, unit="ms")
    report_figures(
        "database and what recall looks into, each message", stored, searched, unit="bytes"
    )

    a_day = int((os.cpu_count() or 1) * BUSY * HOURS * 3600 / sum(cost.values()))
    by_memory = int(psutil.virtual_memory().total * OF_MEMORY / searched)
    by_disk = int(shutil.disk_usage(strata.data_dir).free / stored)
    report_figures(f"a day of {HOURS} hours carries: messages", a_day)
    report_figures("    projects of ten people who ask thirty times each", a_day // PROJECT)
    report_figures("the memory carries: sessions of twenty messages", by_memory // SESSION)
    report_figures("the disk carries: sessions of twenty messages", by_disk // SESSION)
    first = max(cost, key=lambda part: cost[part])
    share = cost[first] / sum(cost.values())
    report_figures(f"gives way first: the processor, of which {first} take a share of", share)
    room = min(by_memory, by_disk) / a_day
    report_figures("    and after so many full days, memory or disk", room)
