"""When a process counts as silent."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from config.runtime import watchdog
from config.runtime.watchdog import MAX_SILENCE_S, MAX_START_S, HeartbeatFile, Watch


class Watched:
    """A watch whose clock and threads the test has in its hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.is_alive = 100.0, False
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=time.sleep)
        monkeypatch.setattr(watchdog, "time", clock)
        monkeypatch.setattr(watchdog.threading, "Thread", AtOnce)
        self.watch = Watch(lambda: self.is_alive)

    def passes(self, seconds: float, step: float = 0.5) -> bool:
        """Whether the process counts as silent after so many seconds."""
        is_silent = False
        end = self.now + seconds
        while self.now < end:
            self.now += step
            is_silent = self.watch.is_silent()
        return is_silent


class AtOnce:
    def __init__(self, target: Callable, args: tuple = (), daemon: bool = False) -> None:
        self.start = lambda: target(*args)


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
    assert not watched.passes(3_600, step=3_600)


def test_an_answer_of_the_process_before_does_not_count(watched):
    watched.watch._probe(start=0)
    watched.is_alive = True
    watched.watch._probe(start=0)
    watched.is_alive = False
    assert not watched.passes(MAX_START_S - 1)


def test_a_heartbeat_file_is_a_sign_of_life_when_it_changes(tmp_path):
    path = tmp_path / "worker.heartbeat"
    path.touch()
    file = HeartbeatFile(path)
    assert not file.has_changed()
    path.write_text("")
    assert file.has_changed()
    assert not file.has_changed()
    path.unlink()
    HeartbeatFile(path).has_changed()


def test_the_last_heartbeat_of_an_ended_process_is_none_of_the_next(tmp_path):
    file = HeartbeatFile(tmp_path / "worker.heartbeat")
    watch = Watch(file.has_changed, file.forget)
    file.path.touch()
    watch.restart()
    assert not file.has_changed()
    file.path.touch()
    assert file.has_changed()
