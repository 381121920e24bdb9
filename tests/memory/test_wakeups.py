"""How often a process asks that what changed be indexed."""

import subprocess
import sys

import pytest

from memory import tasks, wakeups
from tests.commands import ROOT

# Seconds.
BETWEEN = 0.1
ASKED_OFTEN = """
import django
django.setup()
from types import SimpleNamespace
from memory.wakeups import CoalescedWakeup
index = SimpleNamespace(name="index", apply_async=lambda **options: print("asked"))
wakes = CoalescedWakeup(index, 0.1)
for _ in range(9):
    wakes()
"""


@pytest.fixture
def wakes(woken) -> wakeups.CoalescedWakeup:
    return wakeups.CoalescedWakeup(tasks.run_indexing, BETWEEN)


def sent(wakes: wakeups.CoalescedWakeup) -> None:
    """Waits until the timer has sent the task."""
    assert wakes.timer is not None
    wakes.timer.join()


def test_changes_in_a_row_send_one_task(wakes, woken):
    for _ in range(50):
        wakes()
    assert not woken
    sent(wakes)
    assert len(woken) == 1


def test_a_change_after_the_task_sends_another_task(wakes, woken):
    for number in (1, 2):
        wakes()
        sent(wakes)
        assert len(woken) == number


def test_a_process_that_ends_early_sends_its_wakeup_first():
    done = subprocess.run(
        [sys.executable, "-c", ASKED_OFTEN], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["asked"], done.stderr
