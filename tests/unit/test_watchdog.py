"""When a process counts as silent."""

import os
import time
from types import SimpleNamespace

import pytest

from config.runtime import watchdog
from config.runtime.watchdog import MAX_SILENCE_S, MAX_START_S, Watch


class Watched:
    """A watch whose clock and heartbeats the test has in its hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.is_alive = 100.0, False
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=time.sleep)
        monkeypatch.setattr(watchdog, "time", clock)
        self.watch = Watch()

    def passes(self, seconds: float, step: float = 0.5) -> bool:
        """Whether the process counts as silent after so many seconds."""
        is_silent = False
        end = self.now + seconds
        while self.now < end:
            self.now += step
            if self.is_alive:
                self.watch.heartbeat()
            is_silent = self.watch.deadline <= self.now
        return is_silent


@pytest.fixture
def watched(monkeypatch) -> Watched:
    return Watched(monkeypatch)


def test_a_process_that_answers_is_not_silent(watched):
    watched.is_alive = True
    assert not watched.passes(1_000)


def test_a_process_that_answered_may_be_silent_for_15_seconds(watched):
    watched.is_alive = True
    watched.passes(5)
    watched.is_alive = False
    assert not watched.passes(MAX_SILENCE_S - 2)
    assert watched.passes(5)


def test_a_process_that_starts_gets_longer(watched):
    assert not watched.passes(MAX_START_S - 1)
    assert watched.passes(2)


def test_a_process_that_was_restarted_gets_longer_again(watched):
    watched.is_alive = True
    watched.passes(5)
    watched.is_alive = False
    watched.watch.restart()
    assert not watched.passes(MAX_START_S - 1)


def test_a_suspension_does_not_count(watched):
    watched.is_alive = True
    watched.passes(5)
    watched.is_alive = False
    watched.now += 3_600
    watched.watch.resume()
    assert not watched.passes(MAX_SILENCE_S - 2)
    assert watched.passes(5)


def test_the_last_heartbeat_of_an_ended_process_is_none_of_the_next(watched):
    watched.is_alive = True
    watched.passes(5)
    watched.is_alive = False
    watched.watch.restart()
    assert not watched.passes(MAX_START_S - 1)


def test_a_fork_reports_to_its_supervisor(watched):
    before = watched.watch.deadline
    pid = os.fork()
    if not pid:
        watched.watch.heartbeat()
        os._exit(0)
    os.waitpid(pid, 0)
    assert watched.watch.deadline == before - MAX_START_S + MAX_SILENCE_S


def test_all_processes_report_at_the_same_times(watched):
    for watched.now in (100.0, 101.5, 109.9):
        assert watched.now + watchdog.until_heartbeat() == pytest.approx(110)
