"""The supervisor of Strata's processes: starts them, restarts those that die, and stops all.

Each child leads its own session. A terminal's Ctrl-C then reaches only the supervisor, and a child
can be ended together with the processes that it started.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:  # the launcher has only the standard library
    from config.runtime.watchdog import Watch

TICK_S = 0.2
TERM_TIMEOUT_S = 10.0  # from SIGTERM to SIGQUIT
QUIT_TIMEOUT_S = 2.0  # from SIGQUIT to SIGKILL
MAX_RESTART_DELAY_S = 30.0
STABLE_AFTER_S = 60.0  # a child that lived this long is restarted at once
MAX_LOG_BYTES = 5_000_000
LOG_CHECK_INTERVAL_S = 60.0
# One Ctrl-C may arrive twice: through `make`, and directly.
SIGNAL_REPEAT_S = 1.0
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>

# A child first runs this and then execs the program. Popen's preexec_fn could do the same, but may
# deadlock in a process with threads.
LAUNCHER = (sys.executable, "-I", "-S", str(Path(__file__).resolve()), "launch")


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent dies. Only Linux supports this."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@dataclass
class Child:
    """A process to keep alive. Its output goes to the file `log`; if `log` is None, to the output
    of the supervisor.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    # True for a process that the other processes need.
    stops_last: bool = False
    # Niceness: higher values get less processor time when it is scarce.
    nice: int = 0
    # Detects that the process is alive but no longer answers.
    watch: "Watch | None" = None

    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)
    start_at: float | None = field(default=0.0, init=False)
    failures: int = field(default=0, init=False)

    def start(self) -> None:
        """Start the process, and rotate its log first if it is too long."""
        output = None
        if self.log:
            rotate(self.log)
            output = self.log.open("ab")
            os.fchmod(output.fileno(), 0o600)
        try:
            self.process = subprocess.Popen(
                [*LAUNCHER, str(os.getpid()), str(self.nice), *self.command],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        finally:
            if output:
                output.close()
        self.started_at = time.monotonic()
        self.start_at = None
        if self.watch:
            self.watch.restart()

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal_group(self, number: int) -> bool:
        """Send a signal to the process and its children. Return False if none is left."""
        if self.process is None:
            return False
        try:
            os.killpg(self.process.pid, number)
        # macOS raises PermissionError for a group of zombies.
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def plan_restart(self) -> float:
        """Set the time of the restart, and return the delay: 0, 1, 2, 4, … 30 seconds."""
        if time.monotonic() - self.started_at > STABLE_AFTER_S:
            self.failures = 0
        delay = min(MAX_RESTART_DELAY_S, 2.0 ** (self.failures - 1)) if self.failures else 0.0
        self.failures += 1
        self.start_at = time.monotonic() + delay
        return delay

    def cause(self) -> str:
        """Return why it ended: the signal, or the exit code and the last line of its log."""
        code = self.process.returncode if self.process else 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        lines = self.log.read_text(errors="replace").split("\n") if self.log else []
        last_line = next((f" ({line.strip()})" for line in reversed(lines) if line.strip()), "")
        return f"ended with exit code {code}{last_line}"


class Supervisor:
    """Keeps `children` alive inside a `with` block, and stops them at its end.

    SIGINT, SIGTERM and SIGHUP set `stopping`. A second signal skips the timeouts. `report` is
    called with a line for each restart and each forced stop.
    """

    def __init__(self, children: Sequence[Child], report: Callable[[str], None] = print) -> None:
        self.children = children
        self.stopping = False
        self.skip_timeouts = False
        self._report = report
        self._stopping_since = 0.0
        self._logs_checked_at = time.monotonic()
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Under nohup, SIGHUP stays ignored.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._on_signal)
        if sys.platform == "linux":
            # Become the parent of orphaned grandchildren, in order to reap them. By default,
            # process 1 is their parent, which does not always reap in a container.
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        for child in self.children:
            child.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def tick(self) -> None:
        """Replace and restart children, rotate the logs, then sleep for TICK_S."""
        for child in self.children:
            if child.watch and child.is_alive() and child.watch.is_silent():
                self.kill_silent(child, child.watch)
            if child.start_at is None and not child.is_alive():
                self.handle_exit(child)
            if child.start_at is not None and child.start_at <= time.monotonic():
                child.start()
        self._reap_orphans()
        if time.monotonic() - self._logs_checked_at > LOG_CHECK_INTERVAL_S:
            self._logs_checked_at = time.monotonic()
            for child in self.children:
                if child.log:
                    rotate(child.log)
        time.sleep(TICK_S)

    def stop(self) -> None:
        """End all children: with SIGTERM, then SIGQUIT, then SIGKILL."""
        self.stopping = True
        for last in (False, True):
            self._stop_together([child for child in self.children if child.stops_last == last])

    def _stop_together(self, children: Sequence[Child]) -> None:
        for child in children:
            if child.process is not None and child.is_alive():
                # Only the leader: Celery's parent process ends its children after their tasks.
                child.process.terminate()
        self._wait_for(Child.is_alive, children, TERM_TIMEOUT_S)
        for number in (signal.SIGQUIT, signal.SIGKILL):
            for child in filter(Child.is_alive, children):
                self._report(f"{child.name} does not stop; sending {number.name}")
                child.signal_group(number)
            self._wait_for(Child.is_alive, children, QUIT_TIMEOUT_S)
        self._wait_for(lambda child: child.signal_group(signal.SIGKILL), children, QUIT_TIMEOUT_S)

    def _wait_for(
        self, unfinished: Callable[[Child], bool], children: Sequence[Child], seconds: float
    ) -> None:
        """Wait until no child is `unfinished`, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while any([unfinished(child) for child in children]):
            if self.skip_timeouts or time.monotonic() > deadline:
                return
            self._reap_orphans()
            time.sleep(0.02)

    def _reap_orphans(self) -> None:
        """Reap zombies, except the children, whose exit codes are needed."""
        if sys.platform != "linux":
            return
        children = {child.process.pid for child in self.children if child.process}
        with suppress(ChildProcessError):
            while zombie := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if zombie.si_pid in children:
                    return
                os.waitpid(zombie.si_pid, 0)

    def kill_silent(self, child: Child, watch: "Watch") -> None:
        """Kill a child that no longer answers, after it wrote its stacks to its log."""
        assert child.process is not None
        status = watch.request_stacks(child.process.pid)
        self._report(f"{child.name} does not answer ({status}); its stacks are in its log")
        child.signal_group(signal.SIGKILL)
        child.process.wait()

    def handle_exit(self, child: Child) -> None:
        """Kill the remaining processes of a dead child, and plan its restart."""
        child.signal_group(signal.SIGKILL)
        delay = child.plan_restart()
        when = f"in {delay:.0f} s" if delay else "now"
        log = f"; log: {child.log}" if child.log else ""
        self._report(f"{child.name} {child.cause()}; restarting {when}{log}")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.stopping:
            self._stopping_since = now
        elif now - self._stopping_since > SIGNAL_REPEAT_S:
            self.skip_timeouts = True
        self.stopping = True


def rotate(log: Path) -> None:
    """Copy a log that is too long to `<log>.1` and truncate it. Its writers append to it."""
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        shutil.copyfile(log, log.with_name(log.name + ".1"))
        os.truncate(log, 0)


def launch(parent: str, nice: str, *command: str) -> None:
    """Replace this process by `command` with this niceness, tied to the process `parent`."""
    die_with_parent(int(parent))
    os.nice(int(nice))
    os.execvp(command[0], command)


if __name__ == "__main__" and sys.argv[1:2] == ["launch"]:
    launch(*sys.argv[2:])
