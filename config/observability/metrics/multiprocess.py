"""Metrics files that several processes share, so that any web process can report all of them."""

import os
import socket
from pathlib import Path

import psutil
from prometheus_client import values

from config.settings.env import private_folder

# Underscores separate the parts of a file name, and a hyphen the host from the process id.
HOST = socket.gethostname().replace("_", "-")


def share(folder: Path) -> None:
    """Make this process, and those that it forks, count in files in `folder`.

    Call it before the first metric is created.
    """
    private_folder(folder)
    # After a restart, a container's process has the same id; the old gauges are not its own.
    for file in folder.glob(f"gauge_live*_{HOST}-{os.getpid()}.db"):
        file.unlink(missing_ok=True)
    # Containers that share a folder may have equal process ids, so the host is part of the name.
    values.ValueClass = values.MultiProcessValue(lambda: f"{HOST}-{os.getpid()}")


def clear(folder: Path) -> None:
    """Delete the counts of an earlier start."""
    for file in folder.glob("*.db"):
        file.unlink(missing_ok=True)


def remove_dead_gauges(folder: Path) -> None:
    """Delete the gauges of processes of this machine that ended. Their counters remain."""
    for file in folder.glob(f"gauge_live*_{HOST}-*.db"):
        process = file.stem.rpartition("-")[2]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            file.unlink(missing_ok=True)
