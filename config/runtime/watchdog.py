"""Watchdog: finds processes that no longer answer, so that the supervisor can replace them.

Each process touches a file: a web process in its event loop, a worker in a thread. A process is
silent while it does not; time in which the machine or the supervisor was suspended does not count.
"""

import faulthandler
import http.client
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

# More than two heartbeats.
MAX_SILENCE_S = 25.0
# A process that has not answered since its start gets this long.
MAX_START_S = 120.0
ANSWER_TIMEOUT_S = 1.0
# A longer time between two checks means a suspension. Only this much of it counts.
MAX_STEP_S = 11.0
# Names the file that a process touches.
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
    """Measures how long a process has not touched the file `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restart()

    def restart(self) -> None:
        """Begin again, for a process that was just started."""
        # A process that is ended may touch the file when SIGCONT wakes it up.
        self.path.unlink(missing_ok=True)
        self._touched_at = 0
        self._silence_s = 0.0
        self._counted_at = time.monotonic()

    def is_silent(self) -> bool:
        """Count the time since the last call, and return whether the process must be replaced."""
        now = time.monotonic()
        self._silence_s += min(now - self._counted_at, MAX_STEP_S)
        self._counted_at = now
        with suppress(FileNotFoundError):
            touched_at = self.path.stat().st_mtime_ns
            if touched_at != self._touched_at:
                self._touched_at, self._silence_s = touched_at, 0.0
        return self._silence_s > (MAX_SILENCE_S if self._touched_at else MAX_START_S)

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
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_TIMEOUT_S)
    try:
        client.request("GET", "/healthz", headers={"Host": host})
        return client.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()
