"""Starts the process that parses a file, and ends it when it exceeds its limits."""

import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import IO

from memory.files.parsers.child import LENGTH_DIGITS
from memory.files.reading.errors import MESSAGES, unreadable
from memory.files.reading.limits import ReadingLimits

logger = logging.getLogger(__name__)

# The folder that contains the package `memory`.
ROOT = Path(__file__).resolve().parents[3]
# In isolated mode (-I), Python uses neither the environment variables nor the current folder.
START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from memory.files.parsers.{module} import main; main()"
)
READ_BYTES = 2**18
# The unit of ru_maxrss in bytes: kilobytes on Linux, bytes on macOS.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
# The maximum size of the output per character of text, including JSON escapes and labels.
MAX_OUTPUT_BYTES_PER_CHAR = 4
# The maximum length of an exception's name in the log.
MAX_NAME_CHARS = 60
# If a process dies while it uses at least this share of its memory limit, memory is the reason.
FULL = 0.5


def run_parser(
    path: Path, limits: ReadingLimits, *, kind: str, name: str = "", page: int = 0, width: int = 0
) -> bytes:
    """Return the output of the parser of `kind`: JSON or, with `page`, an image.

    Raises `UnreadableFileError`.
    """
    job = {
        "kind": kind,
        "name": name[:300],
        "page": page,
        "width": width,
        "max_pages": limits.max_pages,
        "max_text_chars": limits.max_text_chars,
        "memory_bytes": limits.memory_bytes,
        "cpu_s": limits.cpu_s,
    }
    with path.open("rb") as file:
        output, reason, status, used_bytes = _run("child", job, file, limits)
    if not reason:
        reason = _reason(output, status, used_bytes, limits)
    if reason:
        raise unreadable(reason, limits)
    return output[LENGTH_DIGITS:]


def run_tesseract(image: IO[bytes], program: str, languages: str, limits: ReadingLimits) -> bytes:
    """Return the text that tesseract at the path `program` recognises in `image`.

    Raises `UnreadableFileError` if it exceeds its limits.
    """
    job = {
        "program": program,
        "languages": languages,
        "memory_bytes": limits.memory_bytes,
        "cpu_s": limits.cpu_s,
    }
    output, reason, _, _ = _run("tesseract", job, image, limits)
    if reason:
        raise unreadable(reason, limits)
    return output


def _run(
    module: str, job: dict[str, object], file: IO[bytes], limits: ReadingLimits
) -> tuple[bytes, str, int, int]:
    """Run a module of `parsers`. Return its output, why it was stopped, exit status and peak
    memory.
    """
    start = START.format(module=module)
    process = subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", start, str(ROOT), json.dumps(job)],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,
    )
    output, reason = b"", ""
    try:
        assert process.stdout is not None
        output, reason = _output(process.stdout, limits)
    finally:
        status, used_bytes = _end(process)
    return output, reason, status, used_bytes


def _output(pipe: IO[bytes], limits: ReadingLimits) -> tuple[bytes, str]:
    """Read the output to its end. Return it, and the reason if reading was stopped earlier."""
    deadline = time.monotonic() + limits.wall_s
    most = limits.max_text_chars * MAX_OUTPUT_BYTES_PER_CHAR
    pieces: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(max(0, deadline - time.monotonic())):
            piece = os.read(pipe.fileno(), READ_BYTES)
            if not piece:
                return b"".join(pieces), ""
            pieces.append(piece)
            size += len(piece)
            if size > most:
                return b"", "too_much_text"
    return b"", "timed_out"


def _end(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """End the process and its child processes. Return its exit status and peak memory."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * RSS_UNIT


def _reason(output: bytes, status: int, used_bytes: int, limits: ReadingLimits) -> str:
    """Return the reason why there is no result; empty if there is one."""
    if status == -signal.SIGXCPU:
        return "timed_out"
    # Until the new process runs its program, the kernel reports this process's memory for it.
    ours = getrusage(RUSAGE_SELF).ru_maxrss * RSS_UNIT
    if output[:LENGTH_DIGITS] != f"{len(output) - LENGTH_DIGITS:0{LENGTH_DIGITS}d}".encode():
        # Libraries in C end the process if memory cannot be allocated.
        full = used_bytes > max(FULL * limits.memory_bytes, ours)
        return "out_of_memory" if full else "damaged"
    if not output.startswith(b'{"error"', LENGTH_DIGITS):
        return ""
    try:
        failure = json.loads(output[LENGTH_DIGITS:])
    except ValueError:
        return "damaged"
    # The file may have taken control of the parser: the error may be no text, and the log must not
    # contain text of the file.
    reason = failure["error"] if failure["error"] in list(MESSAGES) else "damaged"
    name = str(failure.get("exception", ""))
    is_name = name.isidentifier() and len(name) <= MAX_NAME_CHARS
    logger.info("A file cannot be read: %s %s", reason, name if is_name else "")
    return reason
