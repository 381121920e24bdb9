"""Two beats: one sends; when it dies, stops or has another time of day, the other does, once."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from config.broker import scheduler as beats
from config.models import Leadership
from config.runtime import commands
from tests.server import ROOT, database_url
from tests.torture import queues

pytestmark = pytest.mark.django_db(transaction=True)

# Seconds after which somebody leads again: the lease, a look, and what a busy machine adds.
HANDOVER = beats.LEASE.total_seconds() + beats.MAX_TICK_S + 10


class Beats:
    """Beat processes by their ids, and which of them leads."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.processes: dict[int, subprocess.Popen] = {}

    def start(self, *wrapped: str) -> int:
        environment = os.environ | {"DATABASE_URL": database_url(), "PYTHONPATH": str(ROOT)}
        with self._log.open("ab") as output:
            process = subprocess.Popen(
                [*wrapped, *commands.beat()],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=output,
            )
        self.processes[process.pid] = process
        return process.pid

    def leader(self) -> int | None:
        row = Leadership.objects.filter(role=beats.ROLE, holder__isnull=False).first()
        return int(row.name.rpartition(":")[2]) if row and row.name else None

    def wait_for_another(self, than: int | None = None) -> float:
        """Until another leads; returns the seconds that took."""
        began = time.monotonic()
        while self.leader() in (None, than):
            assert time.monotonic() - began < HANDOVER + 30, self._log.read_text()
            time.sleep(0.05)
        return time.monotonic() - began

    def kill(self, pid: int) -> None:
        process = self.processes.pop(pid)
        process.kill()
        process.wait(30)

    def end(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(30)


@pytest.fixture
def two(db, tmp_path) -> Iterator[Beats]:
    created = Beats(tmp_path / "beats.log")
    created.start()
    created.start()
    yield created
    created.end()


@pytest.fixture
def every_second(empty_schedule) -> PeriodicTask:
    schedule, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    # Nobody takes it: what is sent stays in the queue, to be counted.
    return PeriodicTask.objects.create(
        name="Sign", task="memory.tasks.run_cycle", interval=schedule
    )


def check_sent_once(queue: queues.Queue, task: PeriodicTask, tally) -> None:
    """Each message was noted by its sender: one that two beats sent would be noted once."""
    task.refresh_from_db()
    sent = queue.waiting()
    assert sent - task.total_run_count in (0, 1)
    tally("messages sent, and none twice", sent)


def test_another_beat_follows_a_dead_or_stopped_one(every_second, two, scale, chance, tally):
    queue = queues.current_queue()
    leader, longest = None, 0.0
    two.wait_for_another()
    for number in range(scale(30, 2)):
        leader = two.leader()
        assert leader is not None
        time.sleep(chance.uniform(1.0, 3.0))
        if number % 2:
            os.kill(leader, signal.SIGSTOP)
            longest = max(longest, two.wait_for_another(leader))
            os.kill(leader, signal.SIGCONT)
        else:
            two.kill(leader)
            longest = max(longest, two.wait_for_another(leader))
            two.start()
        assert longest < HANDOVER
    check_sent_once(queue, every_second, tally)
    tally("handovers", scale(30, 2))
    tally("seconds of the longest handover", round(longest))


@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed")
@pytest.mark.parametrize("off", ["+3h", "-3h"])
def test_a_beat_with_another_time_of_day_sends_what_is_due(
    every_second, tmp_path, off, scale, tally
):
    if scale(False, True):
        pytest.skip("In the long version")
    queue = queues.current_queue()
    skewed = Beats(tmp_path / "beats.log")
    try:
        # Its own clock alone: the connection's time-outs go by the monotonic one.
        wrong = skewed.start("env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-f", off)
        skewed.wait_for_another()
        time.sleep(6)
        sent = queue.waiting()
        assert sent >= 3
        right = skewed.start()
        skewed.kill(wrong)
        skewed.wait_for_another(skewed.leader())
        time.sleep(6)
        assert queue.waiting() >= sent + 3
        assert right in skewed.processes
        check_sent_once(queue, every_second, tally)
    finally:
        skewed.end()
