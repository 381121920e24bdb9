"""The command lines of Strata's processes, for installations without `manage.py up`.

Each process can run any number of times, on any machine.
"""

import os
import sys
from collections.abc import Callable
from functools import partial

PYTHON = [sys.executable, "-m"]


def runner(command: list[str]) -> Callable[[], None]:
    """Return a function that replaces the current process by `command`."""
    return partial(os.execvp, command[0], command)


def worker(*queues: str, concurrency: int = 2) -> list[str]:
    """Return the command of a worker for these queues, with up to `concurrency` tasks at a time."""
    return [
        *(*PYTHON, "celery", "-A", "config", "--quiet", "worker"),
        *("--concurrency", str(concurrency), "-Q", ",".join(queues)),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]


def beat() -> list[str]:
    """Return the command of beat. Several beats elect a leader (config/broker/scheduler.py)."""
    return [*PYTHON, "celery", "-A", "config", "--quiet", "beat", "--pidfile="]
