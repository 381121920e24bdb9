"""Metrics files of several processes. Any web process can report the metrics of all processes."""

import errno
import os
import socket
import time
from pathlib import Path

import psutil
from prometheus_client import mmap_dict, values

# Underscores separate the parts of a file name; a hyphen separates host and process id.
HOST = socket.gethostname().replace("_", "-")

# The interval, in seconds, at which a process tries to store values for which there was no room.
RETRY_S = 10.0


class ReservedDict(mmap_dict.MmapedDict):
    """prometheus_client's mapped file of values, but its blocks are written before they are used.

    The library only sets the length of the file. On a full disk, the kernel then kills each process
    with SIGBUS when it counts something. Here, values without room in the file stay in this
    process, and are stored once there is room.
    """

    def __init__(self, filename: str) -> None:
        self._fname = filename
        self._f = None  # type: ignore[assignment]  # until there is room
        self._positions: dict[str, int] = {}
        self._unsaved: dict[str, tuple[float, float]] = {}
        self._retry_at = float("-inf")

    def read_value(self, key: str) -> tuple[float, float]:
        if key in self._unsaved or not self._has_room(key):
            return self._unsaved.setdefault(key, (0.0, 0.0))
        return super().read_value(key)

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        if self._has_room(key):
            self._unsaved.pop(key, None)
            super().write_value(key, value, timestamp)
        else:
            self._unsaved[key] = (value, timestamp)

    def _has_room(self, key: str) -> bool:
        """Return whether the value is in the file. If it is not, try to add it."""
        if key not in self._positions and time.monotonic() >= self._retry_at:
            try:
                self._store(key)
            except OSError:
                self._retry_at = time.monotonic() + RETRY_S
        return key in self._positions

    def _store(self, key: str) -> None:
        """Add the value to the file. Raises `OSError`."""
        if self._f is None:
            path = Path(self._fname)
            # An earlier process with this id may have left its counts.
            if not path.exists() or not path.stat().st_size:
                # /metrics cannot read an empty file, so the file gets its name when it has zeros.
                draft = path.with_suffix(".new")
                draft.unlink(missing_ok=True)
                _append_zeros(draft, mmap_dict._INITIAL_MMAP_SIZE)
                draft.rename(path)
            super().__init__(self._fname)
        if key not in self._positions:
            self._init_value(key)

    def _init_value(self, key: str) -> None:
        length = len(key.encode())
        # The length of the key, the padded key, and two numbers.
        size = 4 + length + 8 - (length + 4) % 8 + 16
        capacity = self._capacity
        while self._used + size > capacity:
            _append_zeros(Path(self._fname), capacity)
            capacity *= 2
        super()._init_value(key)


def _append_zeros(path: Path, count: int) -> None:
    """Append zeros to a file. If there is no room, leave it as it was."""
    with path.open("ab", buffering=0) as file:
        size = file.tell()
        try:
            written = file.write(bytes(count))
        except OSError:
            written = 0
        if written < count:
            file.truncate(size)
    if written < count:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def share(folder: Path) -> None:
    """Make this process, and processes that it forks, store metrics in files in `folder`.

    Call this before the first metric is created.
    """
    # Delete gauges of an earlier process with this id: after a restart, a container reuses the id.
    for file in folder.glob(f"gauge_live*_{HOST}-{os.getpid()}.db"):
        file.unlink(missing_ok=True)
    # With the host name, because containers that share a folder may have equal process ids.
    values.MmapedDict = ReservedDict  # type: ignore[assignment, misc]
    values.ValueClass = values.MultiProcessValue(lambda: f"{HOST}-{os.getpid()}")


def clear(folder: Path) -> None:
    """Delete the metrics of an earlier run."""
    for file in folder.glob("*.db"):
        file.unlink(missing_ok=True)


def remove_dead_gauges(folder: Path) -> None:
    """Delete the gauges of processes of this machine that have ended. Their counters are kept."""
    for file in folder.glob(f"gauge_live*_{HOST}-*.db"):
        process = file.stem.rpartition("-")[2]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            file.unlink(missing_ok=True)
