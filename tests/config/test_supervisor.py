"""The supervisor, with real processes. It runs in a process of its own: it takes signals, adopts
orphans and reaps them."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from config.runtime import supervisor

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
DRIVER = """
import json, sys
from functools import partial
from config.runtime import supervisor
supervisor.TERM_TIMEOUT_S = supervisor.QUIT_TIMEOUT_S = 0.5
children = [supervisor.Child(name, partial(exec, code, {}))
            for name, code in json.loads(sys.argv[1]).items()]
with supervisor.Supervisor(children, lambda line: print(line, flush=True)) as supervised:
    while not supervised.stopping:
        supervised.tick()
print("stopped", flush=True)
"""
# Children append their process id to a file, `pids`, so that a test sees each start.
SAY_PID = "import os, pathlib, time; open({path!r}, 'a').write(f'{{os.getpid()}}\\n'); "
SLEEP = SAY_PID + "time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP
PARENT = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {inner!r}]); " + SLEEP


class Supervised:
    """A supervisor in a process of its own, with children that run the given code."""

    def __init__(self, folder: Path, **codes: str) -> None:
        self.folder = folder
        filled = {
            name: code.format(
                path=str(folder / name), inner=SLEEP.format(path=str(folder / "inner"))
            )
            for name, code in codes.items()
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, json.dumps(filled)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def pid(self, name: str, start: int = 1) -> int:
        """The process id of the `start`-th start of a child, once it has one."""
        path = self.folder / name
        wait_until(lambda: path.exists() and path.read_text().count("\n") >= start)
        return int(path.read_text().split()[start - 1])

    def end(self, number: int) -> str:
        """Send a signal; what was printed until the end."""
        self.process.send_signal(number)
        printed, _ = self.process.communicate(timeout=20)
        return printed


@pytest.fixture
def supervise(tmp_path) -> Iterator[Callable[..., Supervised]]:
    children = []

    def start(**codes: str) -> Supervised:
        children.append(Supervised(tmp_path, **codes))
        return children[-1]

    yield start
    for child in children:
        child.process.kill()
        child.process.communicate()


def wait_until(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def has_exited(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_killed_child_is_restarted_and_the_restart_is_printed(supervise):
    run = supervise(web=SLEEP, worker=SLEEP)
    worker = run.pid("worker")
    web = psutil.Process(run.pid("web"))
    web.kill()
    assert run.pid("web", start=2) != web.pid
    printed = run.end(signal.SIGTERM)
    assert "web was killed by SIGKILL; restarting now" in printed
    assert run.pid("worker") == worker


def test_the_processes_of_a_killed_child_are_ended(supervise):
    run = supervise(worker=PARENT)
    inner = run.pid("inner")
    psutil.Process(run.pid("worker")).kill()
    wait_until(lambda: not psutil.pid_exists(inner))
    run.pid("worker", start=2)
    run.end(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_all_children(supervise, number):
    run = supervise(web=SLEEP, worker=PARENT)
    pids = [run.pid(name) for name in ("web", "worker", "inner")]
    assert run.end(number).endswith("stopped\n")
    assert run.process.returncode == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_child_that_ignores_sigterm_gets_sigquit(supervise):
    run = supervise(worker=STUBBORN)
    worker = run.pid("worker")
    assert "worker does not stop; sending SIGQUIT" in run.end(signal.SIGTERM)
    assert not psutil.pid_exists(worker)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux signals a child when its parent dies"
)
def test_no_child_outlives_a_killed_supervisor(supervise):
    run = supervise(web=SLEEP, worker=STUBBORN)
    pids = [run.pid("web"), run.pid("worker")]
    run.end(signal.SIGKILL)
    wait_until(lambda: all(has_exited(pid) for pid in pids))


def test_a_child_that_keeps_dying_waits_longer_each_time():
    child = supervisor.Child("web", lambda: None)
    child.started_at = time.monotonic()
    assert [child.plan_restart() for _ in range(8)] == [0, 1, 2, 4, 8, 16, 30, 30]


def test_a_child_that_always_fails_is_restarted_for_ever():
    child = supervisor.Child("web", lambda: None)
    child.started_at, child.failures = time.monotonic(), 5_000
    assert child.plan_restart() == 30


def test_a_stable_child_is_restarted_at_once():
    child = supervisor.Child("web", lambda: None)
    child.failures = 5
    child.started_at = time.monotonic() - supervisor.STABLE_AFTER_S - 1
    assert child.plan_restart() == 0


def test_a_child_runs_with_its_niceness(tmp_path):
    def write() -> None:
        os.write(1, b"%d" % os.nice(0))

    child = supervisor.Child("worker", write, log=tmp_path / "log", nice=5)
    child.start()
    child.wait()
    assert child.exit_code == 0
    assert int((tmp_path / "log").read_text()) == os.nice(0) + 5


def test_a_child_on_demand_starts_with_a_connection_and_may_end(tmp_path):
    listener = socket.create_server(("127.0.0.1", 0))
    starts = tmp_path / "starts"

    def serve() -> None:
        with starts.open("a") as file:
            file.write("started\n")
        accepted, _ = listener.accept()
        accepted.sendall(b"Here.")
        accepted.close()

    printed: list[str] = []
    child = supervisor.Child("demo", serve, on_demand=listener)
    with supervisor.Supervisor([child], printed.append) as running:
        running.tick(0.1)
        assert not starts.exists()
        for count in (1, 2):
            with socket.create_connection(listener.getsockname()) as connection:
                wait_until(lambda: running.tick(0.01) or starts.exists())
                assert connection.recv(9) == b"Here."
            wait_until(lambda: running.tick(0.01) or child.pid is None)
            assert starts.read_text().count("started") == count
    assert printed == []
    listener.close()


def test_a_log_over_the_limit_is_moved_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "MAX_LOG_BYTES", 10)
    log = tmp_path / "web.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"twelve bytes")
        supervisor.rotate(log)
        writer.write(b"more")
    assert log.read_bytes() == b"more"
    assert (tmp_path / "web.log.1").read_bytes() == b"twelve bytes"


def test_a_full_disk_does_not_stop_the_supervisor(tmp_path, monkeypatch):
    def fail(*paths):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(supervisor, "MAX_LOG_BYTES", 10)
    monkeypatch.setattr(supervisor.shutil, "copyfile", fail)
    log = tmp_path / "web.log"
    log.write_bytes(b"twelve bytes")
    supervisor.rotate(log)
    assert log.read_bytes() == b"twelve bytes"


def test_a_child_whose_log_cannot_be_written_runs(tmp_path, capfd):
    log = tmp_path / "deleted" / "web.log"
    child = supervisor.Child("web", lambda: print("It runs."), log=log)
    child.start()
    child.wait()
    output = capfd.readouterr()
    assert (child.exit_code, output.out) == (0, "It runs.\n")
    assert output.err == f"{log}: No such file or directory; web logs here.\n"


def test_the_cause_is_known_without_a_log(tmp_path):
    child = supervisor.Child("web", print, log=tmp_path / "web.log")
    child.exit_code = 3
    assert child.cause() == "ended with exit code 3"


def test_a_child_that_cannot_be_forked_is_tried_again(monkeypatch):
    def fail():
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    printed: list[str] = []
    child = supervisor.Child("web", print)
    monkeypatch.setattr(supervisor.os, "fork", fail)
    supervisor.Supervisor([child], printed.append).tick(0)
    assert printed == ["web cannot be started (Cannot allocate memory); trying again in 30 s"]
    assert child.start_at is not None and child.start_at > time.monotonic() + 20


def test_a_child_on_demand_that_cannot_be_started_ends_no_other_child(monkeypatch):
    def fail() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    printed: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        child = supervisor.Child("demo model", lambda: None, on_demand=listener)
        with (
            supervisor.Supervisor([child], printed.append) as running,
            socket.create_connection(listener.getsockname()),
        ):
            monkeypatch.setattr(supervisor.os, "fork", fail)
            running.tick(1)
    assert printed == [
        "demo model cannot be started (Resource temporarily unavailable); trying again in 30 s"
    ]
