"""A Strata that was installed elsewhere, used through its command and its address only."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import psutil

READY = "Strata is ready: "
# The demo model loads and reads for minutes on a busy machine.
REPLY_TIMEOUT_S = 300


class StrataCommand:
    """The command `strata` with an environment, such as that of a package or an image."""

    def __init__(self, words: Sequence[str | Path], environment: dict[str, str], cwd: Path) -> None:
        self.words = [*map(str, words)]
        self.environment = environment
        self.cwd = cwd

    def run(self, *arguments: str) -> str:
        """Run a command to its end. Returns what it printed."""
        done = subprocess.run(
            [*self.words, *arguments],
            env=self.environment,
            cwd=self.cwd,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    @contextmanager
    def running(self, *arguments: str) -> Iterator["RunningStrata"]:
        strata = RunningStrata(self, arguments)
        try:
            yield strata
        finally:
            strata.stop()


class RunningStrata:
    """A Strata that has printed its address."""

    def __init__(self, command: StrataCommand, arguments: Sequence[str] = ()) -> None:
        self.command = command
        start = time.monotonic()
        self.process = subprocess.Popen(
            [*command.words, *arguments],
            env=command.environment,
            cwd=command.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith(READY):
                break
        assert self.lines and self.lines[-1].startswith(READY), "\n".join(self.lines)
        self.start_s = time.monotonic() - start
        self.address = self.lines[-1].removeprefix(READY)
        # `unshare --fork` waits for the first process of a container.
        process = psutil.Process(self.process.pid)
        self.main = process.children()[0] if "--fork" in command.words else process
        # Until it ends, so that it never waits for a reader of its output.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self) -> float:
        """Send SIGTERM and return the seconds until the command has ended."""
        start = time.monotonic()
        if self.process.poll() is None:
            self.main.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        assert self.process.returncode == 0, "\n".join(self.lines)
        return time.monotonic() - start

    def request(self, method: str, path: str, token: str, **body: Any) -> Any:
        """Call the API. Returns the JSON of its answer."""
        request = Request(
            f"{self.address}/api/v1/{path}",
            method=method,
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urlopen(request, timeout=REPLY_TIMEOUT_S) as response:
                return json.load(response)
        except HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read()[:500]!r}") from error

    def is_healthy(self) -> bool:
        try:
            with urlopen(f"{self.address}/readyz", timeout=5) as response:
                return bool(response.status == 200)
        except URLError:
            return False

    def memory_mb(self, data_dir: Path) -> float:
        """Return the memory of all processes, with shared pages counted once."""
        return (
            sum(process.memory_full_info().pss for process in _tree(self.process.pid, data_dir))
            / 1e6
        )


def chat(strata: RunningStrata, token: str, question: str) -> dict[str, Any]:
    """Ask in a new chat of the project `Billing`, which is created at the first time."""
    projects = strata.request("GET", "projects/", token)["results"]
    if not projects:
        strata.request("POST", "projects/", token, name="Billing")
    session = strata.request("POST", "projects/billing/sessions/", token, title="The cutover")
    answer = strata.request("POST", f"sessions/{session['id']}/messages/", token, content=question)
    reply = answer["reply"]
    assert reply["status"] == "complete" and reply["content"].strip(), reply
    return dict(answer)


def messages(strata: RunningStrata, token: str) -> list[str]:
    """Return the messages of all chats of the project, replies included."""
    sessions = strata.request("GET", "projects/billing/sessions/", token)["results"]
    return [
        message["content"]
        for session in sessions
        for message in strata.request("GET", f"sessions/{session['id']}/messages/", token)[
            "results"
        ]
    ]


def _tree(pid: int, data_dir: Path) -> list[psutil.Process]:
    """The process, the PostgreSQL server on the data folder, and all that they started."""
    roots = [psutil.Process(pid)] + [
        process
        for process in psutil.process_iter()
        if process.name() == "postgres" and str(data_dir) in " ".join(process.cmdline())
    ]
    found = {
        process.pid: process for root in roots for process in [root, *root.children(recursive=True)]
    }
    return [*found.values()]


def size_mb(folder: Path) -> float:
    """Return the space that the files of a folder take on the disk."""
    return (
        sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_dir()) / 1e6
    )


def without_network(words: Sequence[str | Path]) -> list[str]:
    """Return the command so that it runs with no network but the loopback interface."""
    assert os.geteuid() == 0, "only root can take the network away"
    script = 'ip link set lo up && exec "$0" "$@"'
    return ["unshare", "--net", "sh", "-c", script, *map(str, words)]
