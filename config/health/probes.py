"""A look at something that may hang, from a thread of its own, so that who looks does not."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from django.db import connections

T = TypeVar("T")


class Probe(Generic[T]):
    """Looks by `look`, one look at a time: whoever asks while one hangs waits for that one."""

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._lock = Lock()
        self._current: Looking[T] | None = None

    def begin(self) -> "Looking[T]":
        with self._lock:
            if self._current is None or self._current.future.done():
                self._current = Looking()
                # A daemon: one that hangs keeps no process from ending.
                Thread(target=self._run, args=(self._current.future,), daemon=True).start()
            return self._current

    def _run(self, future: Future[T]) -> None:
        try:
            future.set_result(self._look())
        except Exception as error:
            future.set_exception(error)
        finally:
            connections.close_all()


class Looking(Generic[T]):
    """One look, under way since it was begun."""

    def __init__(self) -> None:
        self.future: Future[T] = Future()
        self._began = monotonic()

    def within(self, seconds: float, otherwise: T) -> T:
        """What was seen, or `otherwise` when nothing is so many seconds after the beginning."""
        try:
            return self.future.result(max(0.0, self._began + seconds - monotonic()))
        except TimeoutError:
            return otherwise
