"""Several processes count, and any web process tells of all that share its folder."""

import os
import socket
from pathlib import Path

import psutil
from prometheus_client import values

# In a file's name an underscore separates its parts, and a hyphen the host from the process.
HOST = socket.gethostname().replace("_", "-")


def share(folder: Path) -> None:
    """Has this process, and those it forks, count in files in `folder`. Call it before the first
    metric is made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A container that starts again numbers its process as before: what that said is not its own.
    for file in folder.glob(f"gauge_live*_{HOST}-{os.getpid()}.db"):
        file.unlink(missing_ok=True)
    # A folder may be shared by containers, which number their processes alike.
    values.ValueClass = values.MultiProcessValue(lambda: f"{HOST}-{os.getpid()}")


def empty(folder: Path) -> None:
    """Forgets what processes of an earlier start counted."""
    for file in folder.glob("*.db"):
        file.unlink(missing_ok=True)


def forget_the_dead(folder: Path) -> None:
    """Removes what processes of this machine that are gone said of the moment. What they counted
    stays: a count only grows.
    """
    for file in folder.glob(f"gauge_live*_{HOST}-*.db"):
        process = file.stem.rpartition("-")[2]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            file.unlink(missing_ok=True)
