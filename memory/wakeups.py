"""Wake-ups: start a task as soon as a transaction has created work for it.

If a wake-up is lost, the work is only delayed, because beat also starts these tasks periodically.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from celery import Task
from django.db import connection, transaction

from memory.tasks import TASK_EXPIRES_S, run_deliveries, run_indexing, run_reading

log = logging.getLogger(__name__)

# How long a process collects changes before it sends one indexing task for all of them, in seconds.
# A task for each change took more than twice as much CPU time as the indexing itself.
INDEXING_DELAY_S = 2.0
# The same for reading files, so that the files of one upload are read by one task.
READING_DELAY_S = 0.2
# After a failure, no wake-up is sent for this time, because each attempt blocks the caller.
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


class CoalescedWakeup:
    """Sends one task for all calls within `delay_s` seconds.

    The timer thread is not a daemon, so that a process that exits early still sends the task.
    """

    def __init__(self, task: Task, delay_s: float) -> None:
        self._task = task
        self._delay_s = delay_s
        self._lock = threading.Lock()
        self.timer: threading.Timer | None = None

    def __call__(self) -> None:
        with self._lock:
            if self.timer is None:
                self.timer = threading.Timer(self._delay_s, self._send)
                self.timer.start()

    def _send(self) -> None:
        with self._lock:
            self.timer = None
        send(self._task)


_send_indexing = CoalescedWakeup(run_indexing, INDEXING_DELAY_S)
_send_reading = CoalescedWakeup(run_reading, READING_DELAY_S)


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


_send_deliveries = partial(send, run_deliveries)
