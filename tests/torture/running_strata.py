"""A whole Strata as `manage.py up` runs it, people who talk in it, and what must be true of it.
No Django here.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen
from uuid import uuid4

from tests.server import ROOT, Installation, reserved_port
from tests.torture.clients import Api

# Seconds in which a part that was gone must be made up for.
RECOVERY = 60
# So many of each session's messages are said before the next session begins.
MESSAGES = 3
# What was said then is idle by now, and waits for its summary.
PARTS = ("web-1", "worker")
LONG_AGO = "2026-01-05T10:00:00Z"


class Whole:
    """The processes of `up` on the data of `installation`, from `with` to its end.

    They run the code in the folder `root`.
    """

    def __init__(self, installation: Installation, root: Path = ROOT, **variables: str) -> None:
        self.installation = installation
        self._root = root
        self.data_dir = installation.data_dir
        self._variables = variables
        self._reservation, port = reserved_port()
        self._port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = self.data_dir / "up.log"

    def __enter__(self) -> "Whole":
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--port", str(self._port)],
                cwd=self._root,
                env=self.installation.environment | self._variables,
                stdout=output,
                stderr=output,
            )
        assert self.recovers(120) is not None, self.log.read_text()
        return self

    def __exit__(self, *_) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)
        self._reservation.close()

    @property
    def pid(self) -> int:
        """The process id of `up` itself."""
        return self._process.pid

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError, HTTPException):
            return False

    def recovers(self, seconds: float = RECOVERY) -> float | None:
        """Seconds until it is ready, None if that takes longer."""
        return eventually(self.is_ready, seconds)

    def stop_database_at_once(self) -> None:
        """As PostgreSQL's immediate mode, or a power cut: nothing is brought to its end."""
        lines = (self.data_dir / "postgres/postmaster.pid").read_text().splitlines()
        os.kill(int(lines[0]), signal.SIGQUIT)

    def children(self, parts: Sequence[str] = PARTS) -> dict[str, int]:
        """The process ids of `parts`: the first web process, and the worker that summarises."""
        import psutil

        by_name = {}
        for child in psutil.Process(self.pid).children():
            with suppress(psutil.NoSuchProcess):
                by_name[child.name()] = child.pid
        return {name: by_name[f"strata-{name}"] for name in parts if f"strata-{name}" in by_name}


class Talk:
    """People who say things one after the other and again until they are acknowledged.

    `acknowledged` is what they were told is written, by session.
    """

    def __init__(self, url: str, token: str, slug: str, people: int) -> None:
        self._api = Api(url, token)
        self._slug = slug
        self._over = Event()
        self._people = [Thread(target=self._talk, args=(number,)) for number in range(people)]
        self.acknowledged: dict[str, list[str]] = {}
        self.refused = 0

    def __enter__(self) -> "Talk":
        for person in self._people:
            person.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        for person in self._people:
            person.join()

    @property
    def message_count(self) -> int:
        return sum(map(len, list(self.acknowledged.values())))

    def _talk(self, person: int) -> None:
        while not self._over.is_set():
            path = f"projects/{self._slug}/sessions/"
            session = self._insist("POST", path, {"title": f"Person {person}"})
            if session is None:
                return
            acknowledged = self.acknowledged.setdefault(session["id"], [])
            for number in range(MESSAGES):
                content = f"In {uuid4().hex[:12]} it is {number}, and the cutover is in March."
                body = {"content": content, "reply": False, "created_at": LONG_AGO}
                if self._insist("POST", f"sessions/{session['id']}/messages/", body) is None:
                    return
                acknowledged.append(content)
                time.sleep(random.uniform(0, 0.2))

    def _insist(self, method: str, path: str, body: object) -> Any:
        """As a program that must not fail; None when it is over."""
        key = str(uuid4())
        while not self._over.is_set():
            try:
                return self._api.call(method, path, body, **{"Idempotency-Key": key})
            except (AssertionError, URLError, OSError, HTTPException):
                self.refused += 1
                time.sleep(0.3)
        return None


def eventually(condition: Callable[[], bool], seconds: float) -> float | None:
    """Seconds until `condition` holds, None if that takes longer."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if condition():
            return time.monotonic() - began
        time.sleep(0.25)
    return None


def everything(api: Api, path: str) -> list[dict]:
    messages: list[dict] = []
    page = api.call("GET", path)
    while True:
        messages += page["results"]
        if not page["next"]:
            return messages
        page = api.call("GET", page["next"])


def check_record(api: Api, acknowledged: dict[str, list[str]]) -> int:
    """What was acknowledged is there, once and in its order; returns how many messages."""
    for session, acknowledged_messages in acknowledged.items():
        texts = [message["content"] for message in api.messages(session)]
        # One more may have been written whose acknowledgement was lost.
        assert texts[: len(acknowledged_messages)] == acknowledged_messages, session
        assert len(texts) <= len(acknowledged_messages) + 1 and len(set(texts)) == len(texts), (
            session
        )
    return sum(map(len, acknowledged.values()))


def check_coverage(api: Api, slug: str) -> int:
    """Entries cover disjoint ranges of each session without a gap; returns how many sessions."""
    covered: dict[str, list[tuple[int, int]]] = {}
    for entry in everything(api, f"projects/{slug}/memory/entries/?granularity=conversation"):
        covers = entry["covers"]
        covered.setdefault(covers["session"], []).append((covers["first_seq"], covers["last_seq"]))
    for session, ranges in covered.items():
        ends = [0, *(last for _, last in sorted(ranges))]
        assert [first for first, _ in sorted(ranges)] == [end + 1 for end in ends[:-1]], session
    return len(covered)


def waiting(api: Api, slug: str) -> int:
    """Messages that no entry covers yet."""
    sessions = everything(api, f"projects/{slug}/sessions/")
    return sum(session["unsummarized_count"] for session in sessions)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Until the end, `folder` is a disk of its own. Raises CalledProcessError when it may not."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "strata", folder]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
