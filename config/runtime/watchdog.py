"""Watchdog: finds processes that no longer answer, so that the supervisor can replace them.

Each process writes the time of its heartbeat to memory that it shares with the supervisor: a web
process in its event loop, a worker in the loop that receives its tasks. Time in which the machine
or the supervisor was suspended does not count.
"""

import faulthandler
import http.client
import mmap
import signal
import time
from contextlib import suppress

import psutil

HEARTBEAT_S = 10.0
MAX_SILENCE_S = 15.0
# A process that has not reported since its start gets this long.
MAX_START_S = 120.0
ANSWER_TIMEOUT_S = 1.0
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


def until_heartbeat() -> float:
    """Return the seconds until the next heartbeat.

    All processes report at the same times, so that an idle machine wakes up once for all.
    """
    return HEARTBEAT_S - time.monotonic() % HEARTBEAT_S


class Watch:
    """The time of the last heartbeat of a process, which is a fork of this one."""

    def __init__(self) -> None:
        self._seen_at = memoryview(mmap.mmap(-1, 8)).cast("d")
        self.restart()

    def heartbeat(self) -> None:
        """Report that this process is alive."""
        self._seen_at[0] = time.monotonic()

    def restart(self) -> None:
        """Begin again, for a process that was just started."""
        self._seen_at[0] = 0.0
        self.resume()

    def resume(self) -> None:
        """Count from now on, after a suspension."""
        self._counts_from = time.monotonic()

    @property
    def deadline(self) -> float:
        """The monotonic time at which the process must be replaced if it stays silent."""
        seen_at = self._seen_at[0]
        return max(seen_at, self._counts_from) + (MAX_SILENCE_S if seen_at else MAX_START_S)

    def request_stacks(self, leader: int) -> str:
        """Make the process `leader` and its children write their stacks, even if they are stopped.

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


def answers(address: tuple[str, int], host: str) -> bool:
    """Check whether /healthz answers 200."""
    client = http.client.HTTPConnection(*address, timeout=ANSWER_TIMEOUT_S)
    try:
        client.request("GET", "/healthz", headers={"Host": host})
        return client.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()
