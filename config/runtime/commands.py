"""The command lines of Strata's processes, for installations without `manage.py up`.

Each process can run any number of times, on any machine.
"""

import os
import sys
from collections.abc import Callable
from functools import partial

PYTHON = [sys.executable, "-m"]
# The number of seconds for requests in progress when a web process stops.
SHUTDOWN_S = 5


def runner(command: list[str]) -> Callable[[], None]:
    """Return a function that replaces the current process by `command`."""
    return partial(os.execvp, command[0], command)


def web(port: int, host: str = "127.0.0.1", drain_s: int = SHUTDOWN_S) -> list[str]:
    """Return the command of a web process, whose last requests have `drain_s` seconds to finish."""
    # Proxy headers are only evaluated in one place, according to STRATA_TRUSTED_PROXIES.
    return [
        *(*PYTHON, "uvicorn", "config.asgi:application", "--host", host, "--port", str(port)),
        *("--no-proxy-headers", "--no-access-log", "--log-level", "warning"),
        *("--timeout-graceful-shutdown", str(drain_s)),
    ]


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
