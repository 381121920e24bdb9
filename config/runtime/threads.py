"""A Celery pool of threads with time limits, for workers that run many tasks in one process."""

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
    """Close the database connections of this process that no thread is using.

    Each connection is a process of PostgreSQL. The pool itself would close them one by one.
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
    """The time limits of a running task, by the monotonic clock."""

    soft_at: float
    hard_at: float
    is_warned: bool = False


class Timer(timer2.Timer):
    """Celery's timer. Its thread sleeps for a long time, so nothing waits for its end."""

    def stop(self) -> None:
        self.running = False


class TaskPool(thread.TaskPool):
    """Celery's pool of threads, but with a soft and a hard time limit for tasks.

    The heartbeat of the worker calls `tend`.
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
        """Enforce the time limits, and close unused database connections."""
        self.enforce_limits()
        close_unused_connections()

    def enforce_limits(self) -> None:
        """Raise `SoftTimeLimitExceeded` in a task after its soft limit.

        After the hard limit, the whole process ends, because a thread cannot be ended. The task's
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
