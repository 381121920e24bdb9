"""Watchdog: finds processes that no longer answer, so that the supervisor can replace them.

A web process has to answer /healthz, a worker has to touch its heartbeat file. A process is silent
while neither happens; time in which the machine or the supervisor was suspended does not count.
"""

import faulthandler
import http.client
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

MAX_SILENCE_S = 15.0
# A process that has not answered since its start gets this long.
MAX_START_S = 120.0
PROBE_INTERVAL_S = 1.0
PROBE_TIMEOUT_S = 5.0
# A longer time between two checks means a suspension. Only this much of it counts.
MAX_STEP_S = 1.0
# Names the file that a worker touches.
HEARTBEAT_VARIABLE = "STRATA_HEARTBEAT_FILE"
# Celery and billiard use SIGUSR1.
DUMP_SIGNAL = signal.SIGUSR2
# For one process to write its stacks.
DUMP_S = 0.2


def dump_stacks_on_signal() -> None:
    """Let this process write the stacks of all threads to standard error at DUMP_SIGNAL.

    The handler is in C: it works while Python code spins or a regular expression holds the
    interpreter.
    """
    faulthandler.register(DUMP_SIGNAL, all_threads=True)


class Watch:
    """Measures how long a process has been silent. `check` runs in a thread of its own.

    `forget` discards what an earlier process left, such as its last heartbeat.
    """

    def __init__(
        self, check: Callable[[], bool], forget: Callable[[], None] = lambda: None
    ) -> None:
        self._check, self._forget = check, forget
        self._lock = threading.Lock()
        self._starts = 0
        self.restart()

    def restart(self) -> None:
        """Begin again, for a process that was just started."""
        self._forget()
        with self._lock:
            self._starts += 1
            self._answered_start = 0
            self._has_answered = False
        self._is_probing = False
        self._silence_s = 0.0
        self._counted_at = self._probed_at = time.monotonic()

    def is_silent(self) -> bool:
        """Count the time since the last call, and return whether the process must be replaced."""
        now = time.monotonic()
        self._silence_s += min(now - self._counted_at, MAX_STEP_S)
        self._counted_at = now
        with self._lock:
            if self._has_answered:
                self._has_answered, self._silence_s = False, 0.0
                self._answered_start = self._starts
        if now - self._probed_at >= PROBE_INTERVAL_S and not self._is_probing:
            self._probed_at, self._is_probing = now, True
            threading.Thread(target=self._probe, args=(self._starts,), daemon=True).start()
        limit = MAX_SILENCE_S if self._answered_start == self._starts else MAX_START_S
        return self._silence_s > limit

    def _probe(self, start: int) -> None:
        has_answered = self._check()
        with self._lock:
            # Ignore a late answer of the previous process.
            if start == self._starts:
                self._has_answered = self._has_answered or has_answered
                self._is_probing = False

    def request_stacks(self, leader: int) -> str:
        """Let the process `leader` and its children write their stacks, also if they are stopped.

        Return what the process was doing: `running`, `sleeping`, `stopped`, …
        """
        status = "gone"
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(leader)
            status = str(process.status())
            for member in (process, *process.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    member.send_signal(DUMP_SIGNAL)
                    member.send_signal(signal.SIGCONT)
                # One after the other, because they share a log.
                time.sleep(DUMP_S)
        return status


def answers(port: int, host: str) -> bool:
    """Check whether /healthz answers 200."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_TIMEOUT_S)
    try:
        client.request("GET", "/healthz", headers={"Host": host})
        return client.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


class HeartbeatFile:
    """The file that a worker touches. `has_changed` is the probe of its supervisor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._touched_at()

    def has_changed(self) -> bool:
        before, self._seen = self._seen, self._touched_at()
        return self._seen != before

    def forget(self) -> None:
        """Remove the file. A process that is ended may touch it when SIGCONT wakes it up."""
        self.path.unlink(missing_ok=True)
        self._seen = 0

    def _touched_at(self) -> int:
        try:
            return self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0
