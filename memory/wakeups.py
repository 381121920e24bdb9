"""Wake-ups: start a task as soon as a transaction has created work for it.

If a wake-up is lost, the work is only delayed, because beat also starts these tasks periodically.
"""

import logging
import math
import threading
import time
from collections.abc import Callable

from celery import Task
from django.db import connection, transaction

from memory.tasks import TASK_EXPIRES_S, run_deliveries, run_indexing, run_reading

log = logging.getLogger(__name__)

# The minimum interval between two indexing tasks from one process.
WAKE_INTERVAL_S = 1.0
# After a failure, no wake-ups are sent for this time, because each attempt blocks its caller.
BROKER_RETRY_S = 10.0

_broker_retry_at = 0.0


def wake_indexing() -> None:
    """Send the indexing task when the current transaction commits."""
    _once_on_commit(_send_indexing)


def wake_deliveries() -> None:
    """Send the webhook delivery task when the current transaction commits."""
    _once_on_commit(_send_deliveries)


def wake_reading() -> None:
    """Send the task that reads files when the current transaction commits."""
    _once_on_commit(_send_reading)


def _once_on_commit(send: Callable[[], None]) -> None:
    if not any(hook is send for _, hook, *_ in connection.run_on_commit):
        transaction.on_commit(send)


class ThrottledWakeup:
    """Sends a task at most once in `WAKE_INTERVAL_S`, whatever the number of calls.

    The first call after a pause sends the task at once. Later calls share one task, which a timer
    sends at the end of the interval. The timer thread is not a daemon, so that a process that exits
    early still sends the task.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._sent_at = -math.inf
        self.timer: threading.Timer | None = None

    def __call__(self) -> None:
        with self._lock:
            if self.timer is not None:
                return
            wait = self._sent_at + WAKE_INTERVAL_S - time.monotonic()
            if wait > 0:
                self.timer = threading.Timer(wait, self._send_later)
                self.timer.start()
                return
            self._sent_at = time.monotonic()
        send(self._task)

    def _send_later(self) -> None:
        with self._lock:
            self._sent_at, self.timer = time.monotonic(), None
        send(self._task)


_send_indexing = ThrottledWakeup(run_indexing)
_send_reading = ThrottledWakeup(run_reading)


def _send_deliveries() -> None:
    send(run_deliveries)


def send(task: Task) -> None:
    """Send `task`. If the broker does not answer, log it without raising an error."""
    global _broker_retry_at
    if time.monotonic() < _broker_retry_at:
        return
    try:
        task.apply_async(expires=TASK_EXPIRES_S, retry=False)
    except Exception as error:
        # Each broker raises its own exceptions. The work is committed, so beat will find it.
        log.warning("wakeup_failed task=%s cause=%r", task.name, error)
        _broker_retry_at = time.monotonic() + BROKER_RETRY_S
