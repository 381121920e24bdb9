"""Celery pool of threads with time limits, for workers that run many tasks in one process."""

import ctypes
import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery.concurrency import thread
from celery.exceptions import SoftTimeLimitExceeded
from celery.utils import timer2
from django.db import connection


def close_unused_connections() -> None:
    """Close the database connections of this process that no thread uses.

    Each is a process of PostgreSQL. The pool itself closes them one by one, and keeps those that
    several tasks use each minute for a moment.
    """
    if pool := connection.pool:  # type: ignore[attr-defined]  # PostgreSQL has it
        with pool._lock:
            unused = [*pool._pool]
            pool._pool.clear()
            pool._nconns -= len(unused)
        for unused_connection in unused:
            pool._close_connection(unused_connection)


@dataclass
class Running:
    """The limits of a task, by the monotonic clock."""

    soft_at: float
    hard_at: float
    is_warned: bool = False


class Timer(timer2.Timer):
    """Celery's timer, whose thread sleeps for long and therefore cannot be waited for."""

    def stop(self) -> None:
        self.running = False


class TaskPool(thread.TaskPool):
    """Celery's pool of threads, whose tasks have the soft and the hard time limit.

    The worker's heartbeat calls `tend`.
    """

    Timer = Timer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._running: dict[int, Running] = {}
        self._lock = threading.Lock()

    def on_apply(
        self,
        target: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        callback: Any = None,
        accept_callback: Any = None,
        timeout: float | None = None,
        soft_timeout: float | None = None,
        **options: Any,
    ) -> thread.ApplyResult:
        def limited(*args: Any, **kwargs: Any) -> Any:
            now, own = time.monotonic(), threading.get_ident()
            limits = Running(now + (soft_timeout or float("inf")), now + (timeout or float("inf")))
            with self._lock:
                self._running[own] = limits
            try:
                return target(*args, **kwargs)
            finally:
                with self._lock:
                    del self._running[own]

        return super().on_apply(limited, args, kwargs, callback, accept_callback, **options)

    def tend(self) -> None:
        """Enforce the time limits, and close the connections that no task uses."""
        self.enforce_limits()
        close_unused_connections()

    def enforce_limits(self) -> None:
        """Raise `SoftTimeLimitExceeded` in a task after its soft limit.

        A task that exceeds the hard limit ends the process, because a thread cannot be ended. Its
        crash is counted, and the tasks of the other threads are delivered again.
        """
        now = time.monotonic()
        with self._lock:
            for ident, limits in self._running.items():
                if now > limits.hard_at:
                    faulthandler.dump_traceback(all_threads=True)
                    os.kill(os.getpid(), signal.SIGKILL)
                if now > limits.soft_at and not limits.is_warned:
                    limits.is_warned = True
                    exception = ctypes.py_object(SoftTimeLimitExceeded)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), exception)
