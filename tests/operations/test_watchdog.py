"""A process of `up` that is stopped or spins is replaced, its log names the code at which it was,
and nothing that was acknowledged is lost."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.scripted import ScriptedModel
from tests.server import installed
from tests.torture.clients import Api
from tests.torture.running_strata import Talk, Whole, check_record, eventually

# 15 s of silence, and time for a new process on a machine that has other work.
REPLACED_S = 90
# In every process: at this signal, a regular expression that holds the interpreter for ever.
SPIN = signal.SIGRTMIN
# The main thread waits for ever, and the other threads go on.
HANG = signal.SIGRTMIN + 1
SITECUSTOMIZE = f"""
import os, re, signal, time
def spin_for_ever(*_):
    os.nice(19)  # the other tests need the processor
    re.match("(a+)+$", "a" * 60 + "b")
signal.signal({int(SPIN)}, spin_for_ever)
def hang_for_ever(*_):
    while True:
        time.sleep(1)
signal.signal({int(HANG)}, hang_for_ever)
"""


@pytest.fixture(scope="module")
def strata(tmp_path_factory) -> Iterator[Whole]:
    folder: Path = tmp_path_factory.mktemp("strata-watchdog")
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITECUSTOMIZE)
    data = folder / "data"
    data.mkdir()
    with (
        ScriptedModel() as model,
        installed(data, model) as installation,
        Whole(installation, PYTHONPATH=str(site)) as running,
    ):
        yield running


def silence(strata: Whole, name: str, number: int) -> str:
    """Sends the signal; what the log says once another process has taken the place."""
    before = strata.children()[name]
    if name == "worker":
        # The main loop, beat and Celery's timer: its loop turns.
        worker = psutil.Process(before)
        assert eventually(lambda: worker.num_threads() >= 3, REPLACED_S) is not None
    os.kill(before, number)
    took = eventually(
        lambda: strata.children().get(name, before) != before and strata.is_ready(), REPLACED_S
    )
    assert took is not None, strata.log.read_text()
    print(f"{name} was replaced and Strata ready after {took:.0f} s")
    assert not psutil.pid_exists(before)
    return (strata.data_dir / f"logs/{name}.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGSTOP, SPIN], ids=["stopped", "spins"])
def test_a_silent_web_process_is_replaced(strata, number):
    slug = f"silent-{int(number)}"
    api = Api(strata.url, strata.installation.token)
    api.call("POST", "projects/", {"name": "Billing", "slug": slug, "idle_minutes": 1})
    with Talk(strata.url, api.token, slug, people=2) as talk:
        assert eventually(lambda: talk.message_count > 4, 60) is not None
        log = silence(strata, "web-1", number)
        count = talk.message_count
        assert eventually(lambda: talk.message_count > count + 2, 60) is not None
    assert check_record(api, talk.acknowledged) > 4
    assert "Thread 0x" in log
    assert ("in spin_for_ever" in log) == (number == SPIN)
    status = "stopped" if number == signal.SIGSTOP else "running"
    assert f"web 1 does not answer ({status})" in strata.log.read_text()


@pytest.mark.parametrize(
    ("number", "place"),
    [(signal.SIGSTOP, ""), (SPIN, "in spin_for_ever"), (HANG, "in hang_for_ever")],
    ids=["stopped", "spins", "hangs"],
)
def test_a_silent_worker_is_replaced(strata, number, place):
    log = silence(strata, "worker", number)
    assert "worker does not answer" in strata.log.read_text()
    assert "Thread 0x" in log
    assert place in log


def test_a_process_suspended_with_its_watchdog_is_not_replaced(strata):
    """As a machine that sleeps: the supervisor and its processes wake up together."""
    family = [psutil.Process(strata.pid), *strata_processes(strata)]
    before = strata.children()
    for process in family:
        process.suspend()
    assert eventually(lambda: False, 20) is None
    for process in reversed(family):
        process.resume()
    assert strata.recovers() is not None
    assert eventually(lambda: False, 3) is None
    assert strata.children() == before


def strata_processes(strata: Whole) -> list[psutil.Process]:
    """All but PostgreSQL's."""
    processes = psutil.Process(strata.pid).children(recursive=True)
    return [process for process in processes if "postgres" not in process.name()]
