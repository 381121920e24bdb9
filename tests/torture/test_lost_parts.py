"""PostgreSQL, the broker, the disk and the clock fail under load: nothing that was acknowledged is
lost, and what is due gets done.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest

from tests.scripted import ScriptedModel
from tests.server import Installation, installed, reserved_port
from tests.torture.clients import Api
from tests.torture.conftest import LONG
from tests.torture.running_strata import (
    RECOVERY,
    Talk,
    Whole,
    check_coverage,
    check_record,
    eventually,
    small_disk,
    waiting,
)

PEOPLE = 4
SLUG = "billing"
# Seconds: a beat each minute, and time for its work. In each such time some of it gets done.
ALL_DONE = 180


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


def _each_its_own(fixture_name: str, config: pytest.Config) -> str:
    """In the short version, tests that do little share what takes long to start."""
    return "function" if LONG else "module"


@pytest.fixture(scope=_each_its_own)
def disk(tmp_path_factory) -> Iterator[tuple[Path, str]]:
    """A folder that is a small disk, and ""; or else a mere folder, and why it is no disk."""
    folder, lacking = tmp_path_factory.mktemp("strata-lost"), ""
    with ExitStack() as stack:
        try:
            stack.enter_context(small_disk(folder, 400))
        except subprocess.CalledProcessError as error:
            lacking = f"no small disk can be made here: {error.stderr.decode().strip()}"
        yield folder, lacking


@pytest.fixture(scope=_each_its_own)
def strata(disk) -> Iterator[Whole]:
    with (
        ScriptedModel() as model,
        installed(disk[0], model) as second_installation,
        Whole(second_installation) as running,
    ):
        yield running


def begin(strata: Whole, slug: str = SLUG) -> Api:
    """A project, and the API for its owner."""
    api = Api(strata.url, strata.installation.token)
    api.call("POST", "projects/", {"name": "Billing", "slug": slug, "idle_minutes": 1})
    return api


def settle(strata: Whole, api: Api, scale, tally, slug: str = SLUG) -> None:
    """All that is due gets done: by the beat alone, or at once where time is short."""
    if not scale(True, False):
        idle = datetime.now(UTC) + timedelta(minutes=5)
        strata.installation.manage("memory_cycle", f"--project={slug}", f"--now={idle.isoformat()}")
    began, left = time.monotonic(), waiting(api, slug)
    tally("messages that waited to be remembered", left)
    while eventually(lambda: waiting(api, slug) == 0, ALL_DONE) is None:
        before, left = left, waiting(api, slug)
        assert left < before, f"{left} messages wait"
    tally("seconds until all that was due was done", round(time.monotonic() - began))


def account(api: Api, talk: Talk, worst: float, tally, slug: str = SLUG) -> None:
    tally("messages acknowledged, each there once", check_record(api, talk.acknowledged))
    tally("conversations covered without gap or double", check_coverage(api, slug))
    tally("requests that failed and were made again", talk.refused)
    tally("seconds of the longest recovery (bound 60)", round(worst))


def test_postgresql_is_stopped_at_once(strata, scale, tally, chance):
    slug, worst = "stopped", 0.0
    api = begin(strata, slug)
    with Talk(strata.url, api.token, slug, PEOPLE) as talk:
        for _ in range(scale(30, 2)):
            time.sleep(chance.uniform(*scale((1, 6), (0.5, 1))))
            before = talk.message_count
            strata.stop_database_at_once()
            took = eventually(lambda: talk.message_count > before + PEOPLE, RECOVERY)  # noqa: B023
            assert took is not None, strata.log.read_text()
            ready = strata.recovers()
            assert ready is not None, strata.log.read_text()
            worst = max(worst, took + ready)
            tally("stops of PostgreSQL")
    settle(strata, api, scale, tally, slug)
    account(api, talk, worst, tally, slug)


@contextmanager
def redis(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A Redis: its address, and a function that loses all it holds and stops it for a moment."""
    reservation, port = reserved_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    started: list[subprocess.Popen] = []

    def start() -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, cwd=folder, **quiet))

    def lose() -> None:
        subprocess.run(["redis-cli", "-p", str(port), "flushall"], check=True, capture_output=True)
        started[-1].kill()
        started[-1].wait()
        time.sleep(1)
        start()

    start()
    try:
        yield f"redis://127.0.0.1:{port}/0", lose
    finally:
        started[-1].kill()
        started[-1].wait()
        reservation.close()


def conversations(file: Path, number: int) -> Path:
    """So many that have been idle for long, as a file to import."""
    lines = (
        {
            "session": f"talk-{talk}",
            "role": role,
            "content": f"{text} {talk}.",
            "created_at": f"2026-01-05T10:{minute:02}:00Z",
        }
        for talk in range(number)
        for minute, (role, text) in enumerate(
            [("user", "When is the cutover of"), ("assistant", "In March is the cutover of")]
        )
    )
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


@pytest.mark.skipif(not shutil.which("redis-server"), reason="there is no redis-server here")
def test_redis_is_flushed_and_stopped(tmp_path_factory, model, scale, tally, chance):
    data_dir = tmp_path_factory.mktemp("strata-redis")
    number = scale(500, 20)
    with ExitStack() as stack:
        second_installation = stack.enter_context(installed(data_dir, model))
        address, lose = stack.enter_context(redis(tmp_path_factory.mktemp("redis")))
        strata = stack.enter_context(Whole(second_installation, CELERY_BROKER_URL=address))
        api, worst = begin(strata), 0.0
        talk = stack.enter_context(Talk(strata.url, api.token, SLUG, PEOPLE))
        file = conversations(data_dir / "talk.jsonl", number)
        second_installation.manage(
            "import_conversations", str(file), f"--project={SLUG}", "--owner=admin"
        )
        for _ in range(scale(20, 1)):
            time.sleep(chance.uniform(*scale((1, 12), (0.5, 1))))
            lose()
            took = strata.recovers()
            assert took is not None, strata.log.read_text()
            worst = max(worst, took)
            tally("times Redis lost everything and stopped")
        talk.__exit__()
        tally("conversations that were due", number)
        settle(strata, api, scale, tally)
        account(api, talk, worst, tally)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_the_disk_is_full(disk, strata, scale, tally):
    folder, lacking = disk
    if lacking:
        pytest.skip(lacking)
    slug, worst = "full", 0.0
    api = begin(strata, slug)
    with Talk(strata.url, api.token, slug, PEOPLE) as talk:
        assert eventually(lambda: talk.message_count > 20, 60) is not None
        for _ in range(scale(5, 1)):
            ballast = fill(folder)
            before = talk.refused
            assert eventually(lambda: talk.refused > before, 60) is not None  # noqa: B023
            ballast.unlink()
            message_count = talk.message_count
            took = eventually(lambda: talk.message_count > message_count + PEOPLE, RECOVERY)  # noqa: B023
            assert took is not None, strata.log.read_text()
            worst = max(worst, took)
            tally("times the disk was full")
    settle(strata, api, scale, tally, slug)
    account(api, talk, worst, tally, slug)


def fill(folder: Path) -> Path:
    """A file in `folder` that takes all the room that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(2**12))
    return ballast


class Clock:
    """A wall clock that can be set. `variables` put it before the eyes of a process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.set(0)
        library = folder / "clock.so"
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        self.variables = {"LD_PRELOAD": str(library), "STRATA_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """Off by so many from now on."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))


@pytest.mark.skipif(not LONG, reason="it waits for minutes: see tests/memory/test_clock.py")
@pytest.mark.skipif(not shutil.which("cc"), reason="there is no compiler here")
def test_the_clock_is_set_back(tmp_path_factory, model, scale, tally, monkeypatch):
    """By two hours, for the database, too, while a worker that was killed holds leases."""
    from config.postgres import server as embedded

    data_dir = tmp_path_factory.mktemp("strata-clock")
    data_dir.chmod(0o755)
    with ExitStack() as stack:
        # For the account of the database, too.
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="strata-clock-")))
        folder.chmod(0o755)
        clock = Clock(folder)
        right = embedded.program_options
        monkeypatch.setattr(
            embedded, "program_options", lambda: right() | {"env": right()["env"] | clock.variables}
        )
        plain = stack.enter_context(installed(data_dir, model))
        sockets = quote(str(embedded.socket_directory(data_dir)), safe="")
        variables = {
            "DATABASE_URL": f"postgresql://postgres@{sockets}/postgres",
            "STRATA_SYSTEM_MODEL": "openai-chat:scripted",
        }
        second_installation = Installation(
            data_dir, plain.environment | variables | clock.variables
        )
        model.default = slow
        strata = stack.enter_context(Whole(second_installation))
        api = begin(strata)
        file = conversations(data_dir / "talk.jsonl", 50)
        plain.manage("import_conversations", str(file), f"--project={SLUG}", "--owner=admin")
        with Talk(strata.url, api.token, SLUG, PEOPLE) as talk:
            assert eventually(lambda: len(model.requests) > 0, 150) is not None
            os.killpg(strata.children()["worker"], signal.SIGKILL)
            clock.set(-7200)
            message_count = talk.message_count
            took = eventually(lambda: talk.message_count > message_count + PEOPLE, RECOVERY)
            assert took is not None, strata.log.read_text()
            tally("times the clock was set back by two hours")
        model.default = "- The cutover is in March."
        settle(strata, api, lambda full, short: full, tally)
        account(api, talk, took, tally)


def slow(request: object) -> str:
    time.sleep(3)
    return "- The cutover is in March."
