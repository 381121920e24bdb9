"""Confines the process that parses a file: memory, time, files, network, programs.

Resource limits and an audit hook are used on every system. On Linux, `kernel.py` adds restrictions
by the kernel. The audit hook only sees operations of Python code; libraries in C could evade it.
"""

import os
import resource
import sys
from pathlib import Path
from typing import Any

from memory.files.parsers.kernel import restrict

MAX_OPEN_FILES = 64
NICENESS = 5

_REFUSED = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn"),
    *("os.kill", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink"),
    *("os.chmod", "os.chown", "os.truncate", "shutil.", "urllib.", "ftplib.", "http.", "smtplib."),
    *("sqlite3.", "webbrowser."),
)


def confine(memory_bytes: int, cpu_s: int) -> tuple[str, ...]:
    """Restrict this process permanently. Return what the kernel enforces besides resource limits.

    Afterwards it can only read Python modules and files that are already open.
    """
    limit_resources(memory_bytes, cpu_s)
    folders = library_folders()
    sys.path[:] = folders
    enforced = restrict(folders)
    sys.addaudithook(lambda event, arguments: _audit(event, arguments, folders))
    return enforced


def limit_resources(memory_bytes: int, cpu_s: int) -> None:
    """Limit memory, CPU time, and the files that this process can write or open."""
    for limit, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
    ):
        # The kernel sends SIGXCPU at the soft time limit, and SIGKILL at the hard time limit.
        resource.setrlimit(limit, (most, most + (limit == resource.RLIMIT_CPU)))
    os.nice(NICENESS)


def library_folders() -> tuple[str, ...]:
    """Return the folders of Python's modules, without Strata's folder, which may contain its
    data.
    """
    prefixes = (os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix))
    paths = dict.fromkeys(os.path.realpath(path) for path in sys.path if Path(path).exists())
    return tuple(path for path in paths if path.startswith(prefixes) and "python" in path)


def _audit(event: str, arguments: tuple[Any, ...], folders: tuple[str, ...]) -> None:
    if event == "open":
        path, mode = arguments[0], arguments[1]
        if isinstance(path, int):
            return
        writes = isinstance(mode, str) and set(mode) & set("wax+")
        if writes or not os.path.realpath(os.fspath(path)).startswith(folders):
            raise PermissionError("A parser opened a file.")
    elif event.startswith(_REFUSED):
        raise PermissionError(f"A parser called {event}.")
