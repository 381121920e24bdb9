"""The production shape, started as `python -m tests.shape` does: parts die, and what was
acknowledged is there once, is remembered once, and nothing is left hanging.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from itertools import count
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import psycopg
import pytest

from tests.scripted import Answer, ScriptedModel
from tests.server import ROOT, migrated_into
from tests.shape import parts
from tests.torture.clients import Api

LACKING = parts.missing()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"Not installed: {', '.join(LACKING)}")

SUMMARY = "- The deploy of {}, its rollback and who owns them were talked over at length."
STARTED = re.compile(r"^(\S+) is process (\d+)$")


class Shape:
    """What the script printed, and its processes by name, as they are now."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.webs: list[str] = []
        self.token = self.pooler = ""
        for line in process.stdout:
            if line.startswith("token "):
                self.token = line.split()[1]
            elif line.startswith("DATABASE_URL="):
                self.pooler = line.strip().partition("=")[2]
            elif line.startswith("http://"):
                self.webs.append(line.strip())
            elif line.startswith("Ctrl-C"):
                return
        raise AssertionError("It ended by itself")

    def of(self, *words: str) -> list[psutil.Process]:
        """Processes whose command holds all of these words."""
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if set(words) <= set(child.cmdline())]

    def ready(self) -> bool:
        with suppress(URLError, OSError, HTTPException):
            return all(urlopen(f"{web}/readyz", timeout=5).status == 200 for web in self.webs)
        return False

    def wait_until(self, condition, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def busy(self) -> dict[str, int]:
        """Of PgBouncer: who waits for a transaction, and connections that are in one."""
        address = self.pooler.rpartition("/")[0] + "/pgbouncer"
        with psycopg.connect(address, autocommit=True) as console:
            rows = console.execute("SHOW POOLS")
            names = [column.name for column in rows.description]
            request_counts: Counter[str] = Counter()
            for row in rows:
                pool = dict(zip(names, row, strict=True))
                if pool["database"] != "pgbouncer":
                    request_counts.update({name: pool[name] for name in BUSY})
        return dict(request_counts)


BUSY = ("cl_waiting", "sv_active", "sv_login")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    def speak(request) -> Answer:
        content = request["messages"][-1]["content"]
        named = re.search(r"team \d+", content)
        return Answer(SUMMARY.format(named[0] if named else "a team"))

    with ScriptedModel(default=speak) as server:
        yield server


@pytest.fixture
def shape(model, tmp_path: Path) -> Iterator[Shape]:
    environment = os.environ | {
        "DATABASE_URL": "",
        "CELERY_BROKER_URL": "",
        "STRATA_CHAT_MODEL": "openai-chat:scripted",
        "STRATA_SYSTEM_MODEL": "openai-chat:scripted",
        "OPENAI_BASE_URL": model.base_url,
    }
    folder = tmp_path / "shape"
    folder.mkdir()
    migrated_into(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.shape", str(folder)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        running_shape = Shape(process)
        running_shape.wait_until(running_shape.ready)
        yield running_shape
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=90)
    assert process.returncode == 0


def send_until_acknowledged(shape: Shape, session: str, text: str, key: str, turn: int) -> None:
    """The same request again and again, at one web process after the other, until one answers."""
    for attempt in range(200):
        api = Api(shape.webs[(turn + attempt) % len(shape.webs)], shape.token)
        body = {"content": text, "reply": False}
        with suppress(URLError, OSError, HTTPException):
            api.call("POST", f"sessions/{session}/messages/", body, **{"Idempotency-Key": key})
            return
        time.sleep(0.2)
    raise AssertionError("Nobody answers")


def kinds(shape: Shape) -> dict[str, list[psutil.Process]]:
    return {
        "web": shape.of("run", "web"),
        "worker": shape.of("celery", "worker"),
        "beat": shape.of("celery", "beat"),
    }


def test_acknowledged_work_is_stored_once_and_nothing_hangs(shape, scale, chance, tally):
    api = Api(shape.webs[0], shape.token)
    project = api.call("POST", "projects/", {"name": "Billing", "slug": "billing"})["slug"]
    sessions = [
        api.call("POST", f"projects/{project}/sessions/", {"title": f"Chat {number}"})["id"]
        for number in range(3)
    ]
    number, acknowledged = count(), Counter()
    for kill in range(scale(60, 3)):
        kind = ("web", "worker", "beat")[kill % 3]
        doomed = chance.choice(kinds(shape)[kind])
        for turn in range(4):
            session = sessions[next(number) % len(sessions)]
            text = f"Message {sum(acknowledged.values())} of team {kill}."
            if turn == 2:
                doomed.send_signal(signal.SIGKILL)
            send_until_acknowledged(shape, session, text, text.replace(" ", "-"), turn)
            acknowledged[text] += 1
        tally(f"kills of a {kind}")
    shape.wait_until(shape.ready)
    api = Api(shape.webs[1], shape.token)
    message_counts = Counter(message["content"] for id in sessions for message in api.messages(id))
    assert message_counts == acknowledged
    tally("messages, all of them there once", sum(message_counts.values()))
    for session in sessions:
        api.call("POST", f"sessions/{session}/summarize/")
    entries = f"projects/{project}/memory/entries/?granularity=conversation"
    shape.wait_until(lambda: len(covered(api, entries)) == len(sessions), 240)
    for session in sessions:
        assert covered(api, entries)[session] == list(range(1, len(api.messages(session)) + 1))
    shape.wait_until(lambda: not any(shape.busy().values()), 60)


def covered(api: Api, entries: str) -> dict[str, list[int]]:
    """By session, the places that its entries cover."""
    places: dict[str, list[int]] = {}
    for entry in api.call("GET", entries)["results"]:
        covers = entry["covers"]
        span = range(covers["first_seq"], covers["last_seq"] + 1)
        places.setdefault(covers["session"], []).extend(span)
    return {session: sorted(session_ids) for session, session_ids in places.items()}
