"""Samples the stacks of a process and of its forks, weighted by the processor time of each thread.

`python -m tests.bench.reply_profile` puts this folder into PYTHONPATH. The stacks of a process are
written to STRATA_SAMPLES, again whenever the file `write` in that folder changes.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

INTERVAL_S = 0.002
INTERVAL_NS = 1_000_000
# Intervals between two looks at the file `write`.
LOOK_EVERY = 100
FOLDER = Path(os.environ["STRATA_SAMPLES"])


def processor_ns(thread: int) -> int:
    """Return the processor time of a thread so far, which excludes waiting for a processor."""
    try:
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])
    except OSError:
        return 0


def stack_of(frame) -> str:
    """Return the functions of the stack, the outermost first."""
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{code.co_filename.removeprefix(sys.prefix)}:{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names))


def sample(stacks: Counter[str]) -> None:
    """Sample the threads, except the main thread, which holds the interpreter lock until it waits:
    seen from here, it always waits.
    """
    used: dict[int, int] = {}
    written = changed = 0.0
    looks = 0
    while True:
        time.sleep(INTERVAL_S)
        threads = {thread.ident: thread for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            thread = threads.get(ident)
            if thread in (None, threading.current_thread(), threading.main_thread()):
                continue
            number = thread.native_id or 0
            now = processor_ns(number)
            spent = now - used.get(number, 0)
            used[number] = now
            if spent > 0:
                stacks[stack_of(frame)] += spent
        looks += 1
        if looks % LOOK_EVERY == 0:
            with suppress(OSError):
                changed = (FOLDER / "write").stat().st_mtime
            if changed > written:
                written = changed
                name = Path("/proc/self/comm").read_text().strip()
                path = FOLDER / f"{name}-{os.getpid()}.json"
                path.with_suffix(".new").write_text(json.dumps(stacks.copy()))
                path.with_suffix(".new").rename(path)


class SignalEvent(ctypes.Structure):
    """`struct sigevent` of Linux."""

    _fields_ = [
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("padding", ctypes.c_int * 11),
    ]


def sample_main_thread(stacks: Counter[str]) -> None:
    """Sample the calling thread by a timer that runs with its processor time."""
    last = time.thread_time_ns()

    def add(number, frame) -> None:
        nonlocal last
        now = time.thread_time_ns()
        stacks[stack_of(frame)] += now - last
        last = time.thread_time_ns()

    signal.signal(signal.SIGPROF, add)
    signal.siginterrupt(signal.SIGPROF, False)
    to_thread, clock_of_thread = 4, 3
    event = SignalEvent(None, signal.SIGPROF, to_thread, os.getpid())
    timer = ctypes.c_void_p()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.timer_create(clock_of_thread, ctypes.byref(event), ctypes.byref(timer)) == 0
    # Seconds and nanoseconds: of the interval, and until the first signal.
    times = (ctypes.c_long * 4)(0, INTERVAL_NS, 0, INTERVAL_NS)
    assert libc.timer_settime(timer, 0, ctypes.byref(times), None) == 0


def start() -> None:
    stacks: Counter[str] = Counter()
    threading.Thread(target=sample, args=[stacks], daemon=True, name="sampler").start()
    sample_main_thread(stacks)


os.register_at_fork(after_in_child=start)
