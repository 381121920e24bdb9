"""A task that kills its worker three times is set aside, and others are served meanwhile."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.models import CrashedTask
from config.runtime import commands
from config.runtime.supervisor import Child
from tests.server import ROOT, database_url
from tests.torture import queues
from tests.torture.lethal_tasks import die, write
from tests.torture.test_celery_kills import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

# The worker of `up` is the process that runs its tasks: a supervisor has to start it again.
THREADS = """
import django
django.setup()
import tests.torture.lethal_tasks
from config.runtime import worker
worker.work("worker", ["memory"], heartbeat=lambda: None)
"""
COMMANDS = {
    "prefork": [
        "tests.torture.lethal_tasks" if word == "config" else word
        for word in commands.worker("memory")
    ],
    "threads": [sys.executable, "-c", THREADS],
}


@pytest.fixture(params=COMMANDS)
def worker(request, tmp_path) -> Iterator[Child]:
    child = Child(
        "worker",
        commands.runner(COMMANDS[request.param]),
        {
            "DATABASE_URL": database_url(),
            "STRATA_POOLER": "off",
            "STRATA_DATA_DIR": str(tmp_path),
            "PYTHONPATH": str(ROOT),
        },
        tmp_path / "worker.log",
    )
    yield child
    child.signal_group(9)
    child.wait()


def test_a_task_that_kills_its_worker_is_set_aside(worker, tmp_path: Path):
    queue = queues.current_queue()
    deaths = tmp_path / "deaths"
    queue.send(die, str(deaths))

    def is_set_aside() -> bool:
        if not worker.is_alive():
            queue.let_visibility_run_out()
            worker.start()
        return CrashedTask.objects.set_aside().exists()

    wait_until(is_set_aside)
    row = CrashedTask.objects.get()
    assert (row.task, row.args, row.crashes) == (die.name, [str(deaths)], 3)
    # The next message for the same work is not run either; other work is.
    queue.send(die, str(deaths))
    queue.send(write, str(tmp_path / "written"))
    wait_until(lambda: len(queue) == 0)
    assert (tmp_path / "written").exists()
    assert len(set(deaths.read_text().split())) == 3
    assert os.fspath(deaths) not in (tmp_path / "worker.log").read_text()

    row.delete()
    queue.send(die, str(deaths))
    wait_until(lambda: len(deaths.read_text().split()) > 3)
