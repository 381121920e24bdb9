"""Checks that may hang. They run in a thread, so that the caller can time out."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from django.db import connections

T = TypeVar("T")


class Probe(Generic[T]):
    """A check that runs at most once at a time. Concurrent callers share the run."""

    def __init__(self, check: Callable[[], T]) -> None:
        self._check = check
        self._lock = Lock()
        self._current: ProbeRun[T] | None = None

    def start(self) -> "ProbeRun[T]":
        with self._lock:
            if self._current is None or self._current.future.done():
                self._current = ProbeRun()
                # A daemon thread, so that a hanging check does not keep the process alive.
                Thread(target=self._run, args=(self._current.future,), daemon=True).start()
            return self._current

    def _run(self, future: Future[T]) -> None:
        try:
            future.set_result(self._check())
        except Exception as error:
            future.set_exception(error)
        finally:
            connections.close_all()


class ProbeRun(Generic[T]):
    """One run of a check, and the time when it started."""

    def __init__(self) -> None:
        self.future: Future[T] = Future()
        self._started_at = monotonic()

    def result(self, timeout: float, default: T) -> T:
        """Return the result, or `default` if it takes more than `timeout` seconds."""
        try:
            return self.future.result(max(0.0, self._started_at + timeout - monotonic()))
        except TimeoutError:
            return default
