"""Metrics files of several processes. Any web process can report the metrics of all processes."""

import os
import socket
from pathlib import Path

import psutil
from prometheus_client import values

from config.settings.env import private_folder

# Underscores separate the parts of a file name; a hyphen separates host and process id.
HOST = socket.gethostname().replace("_", "-")


def share(folder: Path) -> None:
    """Make this process, and processes that it forks, store metrics in files in `folder`.

    Call this before the first metric is created.
    """
    private_folder(folder)
    # Delete gauges of an earlier process with this id: after a restart, a container reuses the id.
    for file in folder.glob(f"gauge_live*_{HOST}-{os.getpid()}.db"):
        file.unlink(missing_ok=True)
    # With the host name, because containers that share a folder may have equal process ids.
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
