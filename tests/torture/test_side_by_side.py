"""While Strata is brought up to date, workers of the version before work beside ours, on the tables
of ours. STRATA_OLD names a folder with that version's code.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from django.utils import timezone

from memory.layers import cycle
from memory.layers.periods import Granularity
from memory.models import Entry
from memory.tasks import run_cycle
from projects.models import Project
from tests.server import ROOT, database_url
from tests.torture import queues
from tests.torture.test_memory_kills import (
    Model,
    Torture,
    check_coverage,
    check_parents,
    check_ranges,
    current_leases,
)

OLD = Path(os.environ.get("STRATA_OLD", ""))
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("STRATA_OLD" not in os.environ, reason="STRATA_OLD names no old version"),
]
# As 0.1 starts its worker, and a queue more than it knows for ours.
QUEUES = {OLD: "chat,memory", ROOT: "chat,memory,index,io,webhooks"}
SEND = "from memory.tasks import run_cycle; run_cycle.delay()"


@pytest.fixture
def torture(model_server, chance, tally) -> Torture:
    model_server.reset()
    model_server.default = model = Model()
    return Torture(None, model, chance, tally)


@pytest.fixture
def environment(model_server) -> dict[str, str]:
    return os.environ | {
        "DATABASE_URL": database_url(),
        "OPENAI_BASE_URL": model_server.base_url,
        "STRATA_SYSTEM_MODEL": "openai-chat:scripted",
        "STRATA_CONTEXT_TOKENS": "200000",
    }


@contextmanager
def worker(code: Path, environment: dict[str, str], log: Path) -> Iterator[None]:
    celery = [sys.executable, "-m", "celery", "-A", "config", "worker", "--loglevel=WARNING"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*celery, "--concurrency=2", "-Q", QUEUES[code]],
            cwd=code,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def send_by_the_old(environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "shell", "--verbosity=0", "-c", SEND]
    subprocess.run(command, cwd=OLD, env=environment, check=True)


def settle(send: Callable[[], None], queue: queues.Queue, log: Path) -> None:
    """Cycles, until nothing is left to do; what one does may make more due."""
    deadline = time.monotonic() + 240
    while cycle.due(timezone.now()) or current_leases():
        if not len(queue):
            send()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)


def remembered() -> int:
    return Entry.objects.filter(granularity=Granularity.CONVERSATION).count()


def test_each_does_what_the_other_sends_and_both_together_do_it_once(
    torture, environment, scale, tally, tmp_path
):
    log = tmp_path / "workers.log"
    queue = queues.current_queue()
    torture.settle_in(1, 3)
    Project.objects.update(idle_minutes=0)
    ours, theirs = partial(queue.send, run_cycle), partial(send_by_the_old, environment)
    with worker(OLD, environment, log):
        settle(ours, queue, log)
    assert remembered() == 3
    torture.go_on(3)
    with worker(ROOT, environment, log):
        settle(theirs, queue, log)
    before = remembered()
    with worker(OLD, environment, log), worker(ROOT, environment, log):
        for turn in range(scale(10, 2)):
            torture.go_on(6)
            settle(ours if turn % 2 else theirs, queue, log)
    assert remembered() > before
    check_ranges()
    check_parents()
    check_coverage(tally)
    tally("conversations remembered by old and new workers", remembered())
    assert "Traceback" not in log.read_text()
