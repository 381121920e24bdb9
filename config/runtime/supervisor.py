"""The supervisor: starts Strata's processes, restarts those that die, and stops all of them.

Each child is a fork of the supervisor, so that all share the memory of the modules that it has
loaded. Therefore the supervisor must not have threads: a fork copies locks, but not the threads
that hold them.

Each child leads its own session. Ctrl-C in a terminal then reaches only the supervisor, and a child
can be ended together with its own child processes.
"""

import ctypes
import os
import select
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, Self

from config.runtime.watchdog import Watch

# The maximum length of a tick. Signals, such as those of ended children, and connections end it.
TICK_S = 10.0
# If a sleep takes this much longer than requested, the machine or this process was suspended.
SUSPENDED_S = 1.0
TERM_TIMEOUT_S = 10.0  # from SIGTERM to SIGQUIT
QUIT_TIMEOUT_S = 2.0  # from SIGQUIT to SIGKILL
MAX_RESTART_DELAY_S = 30.0
STABLE_AFTER_S = 60.0  # a child that lived this long is restarted at once
MAX_LOG_BYTES = 5_000_000
LOG_CHECK_INTERVAL_S = 60.0
# A second signal within this time is ignored, because one Ctrl-C may arrive directly and by `make`.
SIGNAL_REPEAT_S = 1.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# <linux/prctl.h>
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36


def prctl(option: int, value: int | bytes) -> None:
    """Change an attribute of this process. Only Linux supports this."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


@dataclass
class Child:
    """A process that is kept alive. Its output is written to the file `log`, or if `log` is None to
    the output of the supervisor.
    """

    name: str
    run: Callable[[], object]
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    # True if the other processes need it until they have stopped.
    stops_last: bool = False
    # Niceness. A higher value gives less CPU time while it is scarce.
    nice: int = 0
    # Detects that the process is alive but does not respond.
    watch: Watch | None = None
    # A connection to this socket starts the process. It may end at any time.
    on_demand: socket.socket | None = None

    pid: int | None = field(default=None, init=False)
    exit_code: int | None = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)
    start_at: float | None = field(default=0.0, init=False)
    failures: int = field(default=0, init=False)

    def start(self) -> None:
        """Start the process. If its log is too long, rotate it first."""
        if self.log:
            rotate(self.log)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        supervisor = os.getpid()
        pid = os.fork()
        if not pid:
            self._become(supervisor)
        self.pid, self.exit_code = pid, None
        self.started_at = time.monotonic()
        self.start_at = None
        if self.watch:
            self.watch.restart()

    def _become(self, supervisor: int) -> NoReturn:
        """Run in the new process, and end it."""
        code = 1
        try:
            self._leave(supervisor)
            self.run()
            code = 0
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            # Not sys.exit, which would run the exit handlers of the supervisor.
            os._exit(code)

    def _leave(self, supervisor: int) -> None:
        """Close or reset what this process has inherited from the supervisor."""
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        # The name for ps and top. The kernel stores up to 15 bytes.
        prctl(PR_SET_NAME, f"strata-{self.name.replace(' ', '-')}".encode()[:15])
        os.nice(self.nice)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if self.log:
            self._write_to_log(self.log)
        os.environ.update(self.environment)

    def _write_to_log(self, log: Path) -> None:
        try:
            output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.fchmod(output, 0o600)
        except OSError as error:
            # Somebody may have deleted the folder. The process must run in any case.
            reason = f"{log}: {error.strerror}; {self.name} logs here."
            print(reason, file=sys.stderr, flush=True)
            return
        os.dup2(output, 1)
        os.dup2(output, 2)

    def is_alive(self) -> bool:
        if self.pid is not None and self.exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
        return self.pid is not None and self.exit_code is None

    def wait(self) -> None:
        """Wait until the process has ended."""
        if self.pid is not None and self.exit_code is None:
            self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def signal_group(self, number: int) -> bool:
        """Send a signal to the process and its children. Return False if none of them is left."""
        if self.pid is None:
            return False
        try:
            os.killpg(self.pid, number)
        # macOS raises PermissionError if all processes of the group are zombies.
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def plan_restart(self) -> float:
        """Set the time of the restart. Return the delay in seconds: 0, 1, 2, 4, …, 30."""
        if time.monotonic() - self.started_at > STABLE_AFTER_S:
            self.failures = 0
        delay = min(MAX_RESTART_DELAY_S, 2.0 ** min(self.failures - 1, 10)) if self.failures else 0
        self.failures += 1
        self.start_at = time.monotonic() + delay
        return delay

    def cause(self) -> str:
        """Return why the process ended: the signal, or exit code and last line of its log."""
        code = self.exit_code or 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        lines: list[str] = []
        if self.log:
            # Somebody may have deleted it.
            with suppress(OSError):
                lines = self.log.read_text(errors="replace").split("\n")
        last_line = next((f" ({line.strip()})" for line in reversed(lines) if line.strip()), "")
        return f"ended with exit code {code}{last_line}"


class Supervisor:
    """Keeps `children` alive within a `with` block, and stops them at its end.

    SIGINT, SIGTERM and SIGHUP set `stopping`. Another signal skips the timeouts. `report` is called
    with a line of text for each restart and each forced stop.
    """

    def __init__(self, children: Sequence[Child], report: Callable[[str], None] = print) -> None:
        self.children = children
        self.stopping = False
        self.skip_timeouts = False
        self._report = report
        self._stopping_since = 0.0
        self._logs_checked_at = time.monotonic()
        self._handlers: dict[int, object] = {}
        # A signal makes the first socket readable.
        self._signals, self._signals_end = socket.socketpair()

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            # Under nohup, SIGHUP is ignored, and this must not change.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._on_signal)
        # Without a handler, SIGCHLD would not wake this process.
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        self._signals.setblocking(False)
        self._signals_end.setblocking(False)
        signal.set_wakeup_fd(self._signals_end.fileno(), warn_on_full_buffer=False)
        # Become the parent of orphaned grandchildren, in order to reap them. Otherwise process 1
        # would be their parent, and in a container it does not always reap.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        for child in self.children:
            if child.on_demand:
                child.start_at = None
            else:
                child.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def tick(self, seconds: float = TICK_S) -> None:
        """Replace and restart children, rotate logs, and then sleep until something happens."""
        for child in self.children:
            if child.watch and child.is_alive() and child.watch.deadline <= time.monotonic():
                self.kill_silent(child, child.watch)
            if child.start_at is None and child.pid is not None and not child.is_alive():
                self.handle_exit(child)
            if child.start_at is not None and child.start_at <= time.monotonic():
                self._restart(child)
        self._reap_orphans()
        if time.monotonic() - self._logs_checked_at > LOG_CHECK_INTERVAL_S:
            self._logs_checked_at = time.monotonic()
            for child in self.children:
                if child.log:
                    rotate(child.log)
        now = time.monotonic()
        starts = [child.start_at for child in self.children if child.start_at is not None]
        deadlines = [
            child.watch.deadline
            for child in self.children
            if child.watch and child.start_at is None
        ]
        self._sleep(max(0.0, min([now + seconds, *starts, *deadlines]) - now))

    def _restart(self, child: Child) -> None:
        try:
            child.start()
        except OSError as error:
            # There is no memory for a fork, for example. The other children must be kept alive.
            child.start_at = time.monotonic() + MAX_RESTART_DELAY_S
            self._report(
                f"{child.name} cannot be started ({error.strerror});"
                f" trying again in {MAX_RESTART_DELAY_S:.0f} s"
            )

    def _sleep(self, seconds: float) -> None:
        """Wait for a signal or a connection. Start the child for which the connection is."""
        waiting = {
            child.on_demand: child
            for child in self.children
            if child.on_demand and child.pid is None and child.start_at is None
        }
        awake_at = time.monotonic() + seconds
        ready, _, _ = select.select([self._signals, *waiting], [], [], seconds)
        if time.monotonic() > awake_at + SUSPENDED_S:
            for child in self.children:
                if child.watch:
                    child.watch.resume()
        for source in ready:
            if source is self._signals:
                self._signals.recv(4096)
            else:
                self._restart(waiting[source])

    def stop(self) -> None:
        """End all children: with SIGTERM, then SIGQUIT, then SIGKILL."""
        self.stopping = True
        for last in (False, True):
            self._stop_together([child for child in self.children if child.stops_last == last])

    def _stop_together(self, children: Sequence[Child]) -> None:
        for child in filter(Child.is_alive, children):
            assert child.pid is not None
            # Only to the process itself: Celery's parent ends its children after their tasks.
            os.kill(child.pid, signal.SIGTERM)
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
        """Reap all zombies except the children, whose exit codes are still needed."""
        if sys.platform != "linux":
            return
        children = {child.pid for child in self.children}
        with suppress(ChildProcessError):
            while zombie := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if zombie.si_pid in children:
                    return
                os.waitpid(zombie.si_pid, 0)

    def kill_silent(self, child: Child, watch: Watch) -> None:
        """Kill a child that does not respond. Before that, it writes its stacks to its log."""
        assert child.pid is not None
        status = watch.request_stacks(child.pid)
        self._report(f"{child.name} does not answer ({status}); its stacks are in its log")
        child.signal_group(signal.SIGKILL)
        child.wait()

    def handle_exit(self, child: Child) -> None:
        """Kill the remaining processes of a dead child, and schedule its restart."""
        child.signal_group(signal.SIGKILL)
        if child.on_demand and not child.exit_code:
            child.pid = None
            return
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
    """Copy a log that is too long to `<log>.1` and truncate it. Processes append to the log.

    If the disk is full, the log stays as it is, because the processes must be kept alive.
    """
    with suppress(OSError):
        if log.stat().st_size > MAX_LOG_BYTES:
            shutil.copyfile(log, log.with_name(log.name + ".1"))
            os.truncate(log, 0)
