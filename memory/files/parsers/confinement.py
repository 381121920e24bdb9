"""Takes the rights of the process that parses a file: memory, time, files, network, programs."""

import os
import resource
import sys
from typing import Any

MAX_OPEN_FILES = 64


def confine(memory_bytes: int, cpu_s: int) -> None:
    """Limit this process for good.

    Resource limits bound memory, processor time and written files. An audit hook refuses what
    Python code does besides reading modules of the interpreter.
    """
    for limit, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
    ):
        # The kernel sends SIGXCPU at the soft limit of time, and SIGKILL at the hard one.
        resource.setrlimit(limit, (most, most + (limit == resource.RLIMIT_CPU)))
    roots = _library_folders()
    sys.path[:] = [path for path in sys.path if path in roots]
    sys.addaudithook(lambda event, arguments: _audit(event, arguments, roots))


def _library_folders() -> tuple[str, ...]:
    """Return the folders of Python's modules: the last place that the process may read."""
    return tuple({path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))})


_REFUSED = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn"),
    *("os.kill", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink"),
    *("os.chmod", "os.chown", "os.truncate", "os.listdir", "os.scandir", "shutil.", "urllib."),
    *("ftplib.", "http.", "smtplib.", "sqlite3.", "webbrowser.", "ctypes.dlopen"),
)


def _audit(event: str, arguments: tuple[Any, ...], roots: tuple[str, ...]) -> None:
    if event == "open":
        path, mode = arguments[0], arguments[1]
        if isinstance(path, int):
            return
        writes = isinstance(mode, str) and set(mode) & set("wax+")
        if writes or not os.path.realpath(os.fspath(path)).startswith(roots):
            raise PermissionError("A parser opened a file.")
    elif event.startswith(_REFUSED):
        raise PermissionError(f"A parser called {event}.")
