"""Runs Strata's processes: starts them, starts again what dies, and stops all of them.

Each child leads a session of its own, so that a terminal's Ctrl-C reaches only the supervisor and
a child can be ended together with whatever it started.
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
from typing import Self

TICK = 0.2  # seconds between two looks at the children
GRACE = 10.0  # seconds from SIGTERM to SIGQUIT
LAST_WORDS = 2.0  # seconds from SIGQUIT to SIGKILL
LONGEST_DELAY = 30.0  # seconds before a child that keeps dying is started again
STEADY = 60.0  # seconds; who lived so long is started again at once
LOG_LIMIT = 5_000_000  # bytes
LOG_CHECK = 60.0  # seconds between two looks at the logs' sizes
IMPATIENCE = 1.0  # seconds; one kill may reach us twice, through `make` and directly
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>

# A child first runs this, then becomes the program: Popen's preexec_fn, which could do the same,
# may deadlock in a process with threads.
LAUNCHER = (sys.executable, "-I", "-S", str(Path(__file__).resolve()), "launch")


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent `parent` dies; only Linux can."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of what the children leave behind, so that it can be reaped.

    Otherwise that is the machine's first process, which in a container may not know how.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


@dataclass
class Child:
    """One process to be kept alive. `log` takes its output, or None lets it through."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    # Those that others lean on stop after them.
    stops_last: bool = False
    # By how much it gives way where processors are short.
    nice: int = 0

    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)
    start_at: float | None = field(default=0.0, init=False)
    failures: int = field(default=0, init=False)

    def start(self) -> None:
        """Start the process, with its log cut first if it grew too long."""
        output = None
        if self.log:
            trim(self.log)
            output = self.log.open("ab")
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

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal_group(self, number: int) -> bool:
        """Send a signal to the process and whatever it started; False if none of it is left."""
        if self.process is None:
            return False
        try:
            os.killpg(self.process.pid, number)
        # macOS says PermissionError of a group that holds only the dead.
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def plan_restart(self) -> float:
        """Set when to start it again, and return the delay: 0, 1, 2, 4, … 30 seconds."""
        if time.monotonic() - self.started_at > STEADY:
            self.failures = 0
        delay = min(LONGEST_DELAY, 2.0 ** (self.failures - 1)) if self.failures else 0.0
        self.failures += 1
        self.start_at = time.monotonic() + delay
        return delay

    def cause(self) -> str:
        """Why it ended, in words: a signal, or the exit code with the last line of its log."""
        code = self.process.returncode if self.process else 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        lines = self.log.read_text(errors="replace").split("\n") if self.log else []
        said = next((f" ({line.strip()})" for line in reversed(lines) if line.strip()), "")
        return f"ended with exit code {code}{said}"


class Supervisor:
    """Keeps `children` alive inside a `with` block, and stops them when it is left.

    SIGINT, SIGTERM and SIGHUP set `stopping`; a second one shortens the children's grace to
    nothing. `say` is called with one line for each thing worth knowing.
    """

    def __init__(self, children: Sequence[Child], say: Callable[[str], None] = print) -> None:
        self.children = children
        self.stopping = False
        self.hurried = False
        self._say = say
        self._stopping_since = 0.0
        self._logs_seen = time.monotonic()
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup has SIGHUP ignored, and means it.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._on_signal)
        adopt_orphans()
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
        """Start again what has died and is due, trim the logs, then sleep for a moment."""
        for child in self.children:
            if child.start_at is None and not child.is_alive():
                self._bury(child)
            if child.start_at is not None and child.start_at <= time.monotonic():
                child.start()
        self._reap_orphans()
        if time.monotonic() - self._logs_seen > LOG_CHECK:
            self._logs_seen = time.monotonic()
            for child in self.children:
                if child.log:
                    trim(child.log)
        time.sleep(TICK)

    def stop(self) -> None:
        """End all children: SIGTERM first, harder means for those that do not go."""
        self.stopping = True
        for last in (False, True):
            self._stop_together([child for child in self.children if child.stops_last == last])

    def _stop_together(self, children: Sequence[Child]) -> None:
        for child in children:
            if child.process is not None and child.is_alive():
                # Only the leader: Celery's ends its own children when their tasks are done.
                child.process.terminate()
        self._wait_for(Child.is_alive, children, GRACE)
        for number in (signal.SIGQUIT, signal.SIGKILL):
            for child in filter(Child.is_alive, children):
                self._say(f"{child.name} does not stop; sending {number.name}")
                child.signal_group(number)
            self._wait_for(Child.is_alive, children, LAST_WORDS)
        self._wait_for(lambda child: child.signal_group(signal.SIGKILL), children, LAST_WORDS)

    def _wait_for(
        self, unfinished: Callable[[Child], bool], children: Sequence[Child], seconds: float
    ) -> None:
        """Wait till no child is `unfinished`, at most `seconds`, or not at all when hurried."""
        deadline = time.monotonic() + seconds
        while any([unfinished(child) for child in children]):
            if self.hurried or time.monotonic() > deadline:
                return
            self._reap_orphans()
            time.sleep(0.02)

    def _reap_orphans(self) -> None:
        """Take the dead off the process table, except children, whose exit code is wanted."""
        if sys.platform != "linux":
            return
        children = {child.process.pid for child in self.children if child.process}
        with suppress(ChildProcessError):
            while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if dead.si_pid in children:
                    return
                os.waitpid(dead.si_pid, 0)

    def _bury(self, child: Child) -> None:
        """Clear away what a dead child left, and plan its next start."""
        child.signal_group(signal.SIGKILL)
        delay = child.plan_restart()
        when = f"in {delay:.0f} s" if delay else "now"
        place = f"; log: {child.log}" if child.log else ""
        self._say(f"{child.name} {child.cause()}; starting it again {when}{place}")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.stopping:
            self._stopping_since = now
        elif now - self._stopping_since > IMPATIENCE:
            self.hurried = True
        self.stopping = True


def trim(log: Path) -> None:
    """Move a log that grew too long to `<log>.1`. Its writers append, so they go on at the top."""
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        shutil.copyfile(log, log.with_name(log.name + ".1"))
        os.truncate(log, 0)


def _launch(parent: str, nice: str, *command: str) -> None:
    """Become `command`, which gives way by `nice`, to be killed with the process `parent`."""
    die_with_parent(int(parent))
    os.nice(int(nice))
    os.execvp(command[0], command)


if __name__ == "__main__" and sys.argv[1:2] == ["launch"]:
    _launch(*sys.argv[2:])
