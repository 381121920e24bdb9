"""Celery's processes as the units of deploy/ start them, and ways to kill them."""

import random
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from config.runtime import commands
from config.runtime.supervisor import Child
from tests.server import ROOT, database_url
from tests.torture.monitored_worker import APP, IDLE, NOTES

# What is killed: one child, which its parent replaces; the parent, after which the kernel kills its
# children; all at the same time, as when the machine dies.
TARGETS = ("child", "parent", "group")


class Celery:
    """A worker, which is a parent with two children, and a beat. `notes` is an empty folder."""

    def __init__(self, model_url: str, notes: Path) -> None:
        self.notes = notes
        environment = {
            "DATABASE_URL": database_url(),
            "OPENAI_BASE_URL": model_url,
            "STRATA_SYSTEM_MODEL": "openai-chat:scripted",
            "STRATA_CONTEXT_TOKENS": "200000",
            "PYTHONPATH": str(ROOT),
            NOTES: str(notes),
        }
        worker = [APP if word == "config" else word for word in commands.worker("memory")]
        self._parts = {
            name: Child(name, commands.runner(command), environment, notes / f"{name}.log")
            for name, command in (("worker", worker), ("beat", commands.beat()))
        }

    def start(self, part: str) -> None:
        self._parts[part].start()

    def is_alive(self) -> bool:
        return self._parts["worker"].is_alive()

    @property
    def parent(self) -> psutil.Process:
        return psutil.Process(self._parts["worker"].pid)

    def pids(self) -> list[int]:
        """The parent, then its children."""
        return [self.parent.pid, *(child.pid for child in self.parent.children())]

    def at(self, pid: int) -> tuple[str, str]:
        """The phase, and the row, at which a process is, or was when it died."""
        try:
            noted = (self.notes / str(pid)).read_text().strip()
        except FileNotFoundError:
            noted = IDLE
        phase, _, row = noted.partition(" ")
        return phase, row

    def wait_for(self, phases: Collection[str], seconds: float) -> int | None:
        """A process that is in one of the phases; None when none comes to it in that time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            pids = self.pids()
            for _ in range(50):
                for pid in pids:
                    if self.at(pid)[0] in phases:
                        return pid
                time.sleep(0.001)
        return None

    def kill(self, target: str, chance: random.Random, pid: int | None = None) -> list[int]:
        """Kills a child (`pid`, should it be one), or the worker; returns who is dead now."""
        parent, children = self.parent, self.parent.children()
        doomed = [parent, *children]
        if target == "child":
            doomed = [child for child in children if child.pid == pid] or [chance.choice(children)]
        for process in doomed[:1] if target == "parent" else doomed:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        if target != "child":
            self._parts["worker"].wait()
        _wait_till_dead(doomed)
        return [process.pid for process in doomed]

    def end(self) -> None:
        for part in self._parts.values():
            part.signal_group(signal.SIGKILL)
            part.wait()


def _wait_till_dead(processes: Iterable[psutil.Process]) -> None:
    deadline = time.monotonic() + 30
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline, f"{process} lives on"
                time.sleep(0.005)


@contextmanager
def celery(model_url: str, notes: Path) -> Iterator[Celery]:
    """A worker that has just been started."""
    notes.mkdir()
    processes = Celery(model_url, notes)
    processes.start("worker")
    try:
        yield processes
    finally:
        processes.end()
