"""How often a process asks that what changed be indexed."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from memory import tasks, wakeups
from tests.commands import ROOT

# Seconds.
BETWEEN = 0.4
ASKED_TWICE = """
import django
django.setup()
from types import SimpleNamespace
from memory.wakeups import ThrottledWakeup
index = SimpleNamespace(name="index", apply_async=lambda **options: print("asked"))
wakes = ThrottledWakeup(index)
for _ in range(9):
    wakes()
"""


@pytest.fixture
def wakes(woken, monkeypatch) -> Iterator[wakeups.ThrottledWakeup]:
    monkeypatch.setattr(wakeups, "WAKE_INTERVAL_S", BETWEEN)
    wakeup = wakeups.ThrottledWakeup(tasks.run_indexing)
    yield wakeup
    # The last one asks as long as the broker is not the real one.
    if later := wakeup.timer:
        later.join()


def test_the_first_change_is_told_at_once_and_those_after_it_together(wakes, woken):
    wakes()
    assert len(woken) == 1
    for _ in range(50):
        wakes()
    assert len(woken) == 1
    time.sleep(3 * BETWEEN)
    assert len(woken) == 2
    wakes()
    assert len(woken) == 3


def test_while_changes_go_on_so_do_the_messages(wakes, woken):
    until = time.monotonic() + 5 * BETWEEN
    while time.monotonic() < until:
        wakes()
        time.sleep(0.01)
    assert 3 <= len(woken) <= 6


def test_a_process_that_ends_early_sends_its_wakeup_first():
    done = subprocess.run(
        [sys.executable, "-c", ASKED_TWICE], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["asked", "asked"], done.stderr
