"""Processes are replaced by those of the new version while people chat: no request fails but for a
retry, and nothing is lost.

The version before is the code before the newest migrations (STRATA_OLD_COMMIT names another one),
and version 0.1.0.
"""

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from threading import Event, Lock, Thread
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest

from config.postgres import server
from tests.release.history import VERSION_0_1, code_before, code_of, has_commit
from tests.scripted import Answer, ScriptedModel
from tests.server import PASSWORD, ROOT
from tests.shape.ports import reserved_port
from tests.torture.clients import Api
from tests.torture.running_strata import eventually

COMMANDS = Path("config/management/commands")
MIGRATIONS = 2
# Two workers of version 0.1.0 that index the same summary collide. The task runs again.
COLLISION_IN_0_1 = "memory_vector_chunk_id"
# A worker of the old version drops periodic tasks that only the new version has. Beat sends them
# again.
UNKNOWN_TASK = "Received unregistered task of type"
TALKERS = 6
# Seconds of talk before, between and after the steps of the upgrade.
PACE_S = 8
RETRIES = 40


@dataclass
class Installation:
    """Processes of two versions on one data folder, and the addresses that a proxy would know."""

    environment: dict[str, str]
    log: Path
    urls: list[str] = field(default_factory=list)

    def manage(self, code: Path, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *manage_words(code, *arguments)],
            cwd=code,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    @contextmanager
    def process(self, code: Path, *arguments: str) -> Iterator[subprocess.Popen]:
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, *run_words(code, *arguments)],
                cwd=code,
                env=self.environment,
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)

    @contextmanager
    def web(self, code: Path) -> Iterator[None]:
        """A web process, which gets requests as long as it is not asked to stop."""
        reservation, port = reserved_port()
        url = f"http://127.0.0.1:{port}"
        with reservation, self.process(code, "web", "--port", str(port)):
            assert eventually(lambda: answers(url), 120) is not None, self.log.read_text()
            self.urls.append(url)
            try:
                yield
            finally:
                self.urls.remove(url)

    def worker(self, code: Path):
        return self.process(code, "worker", "--concurrency", "2")


def manage_words(code: Path, *arguments: str) -> list[str]:
    """Return the command line of a management command. Version 0.1.0 had no `prepare`."""
    if arguments == ("prepare",) and not (code / COMMANDS / "prepare.py").exists():
        prepare = "from config.management.commands import up; up.Command().prepare_database(False)"
        return ["manage.py", "shell", "-c", prepare]
    return ["manage.py", *arguments]


def run_words(code: Path, part: str, *options: str) -> list[str]:
    """Return the command line of `run`, or what `up` of version 0.1.0 started in its place."""
    if (code / COMMANDS / "run.py").exists():
        return ["manage.py", "run", part, *options]
    if part == "web":
        uvicorn = ["-m", "uvicorn", "config.asgi:application", "--log-level", "warning"]
        return [*uvicorn, "--timeout-graceful-shutdown", "5", *options]
    celery = ["-m", "celery", "-A", "config", part]
    if part == "worker":
        return [*celery, "-Q", "chat,memory", "--without-gossip", "--without-mingle", *options]
    return [*celery, "--pidfile=", "--scheduler", "django_celery_beat.schedulers:DatabaseScheduler"]


def answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/healthz", timeout=2):
            return True
    except (URLError, OSError, HTTPException):
        return False


class Talker:
    """Somebody who chats through a proxy that knows the web processes which are not stopping."""

    def __init__(self, installation: Installation, token: str, number: int) -> None:
        self.installation = installation
        self.token = token
        self.number = number
        # Questions by session: all that were acknowledged.
        self.sessions: dict[str, list[str]] = {}

    def talk(self, over: Event, count: Counter, lock: Lock) -> None:
        while not over.is_set():
            session = self.post("projects/upgrade/sessions/", count, lock, title="Talk")["id"]
            questions = self.sessions[session] = []
            for turn in range(3):
                text = f"Question {turn} of {self.number} about the cutover on {uuid4()}"
                answer = self.post(f"sessions/{session}/messages/", count, lock, content=text)
                questions.append(text)
                self.complete(answer["reply"], count, lock)
            self.post(f"sessions/{session}/summarize/", count, lock)

    def complete(self, reply: dict, count: Counter, lock: Lock) -> None:
        """Regenerate a reply that was cut off when its web process had no more time."""
        while reply["status"] != "complete":
            assert reply["status"] == "interrupted", reply
            with lock:
                count["replies that were cut off, and regenerated"] += 1
            answer = self.post(f"messages/{reply['id']}/regenerate/", count, lock)
            reply = answer.get("reply", answer)

    def post(self, path: str, count: Counter, lock: Lock, **body: str) -> dict:
        """Send a request until it is answered, with the same key, as docs/api.md describes."""
        key = str(uuid4())
        for _ in range(RETRIES):
            request = Request(
                f"{random.choice(self.installation.urls)}/api/v1/{path}",
                json.dumps(body).encode(),
                {
                    "Authorization": f"Bearer {self.token}",
                    "Content-Type": "application/json",
                    "Idempotency-Key": key,
                },
            )
            try:
                with urlopen(request, timeout=90) as response:
                    with lock:
                        count["requests"] += 1
                    return dict(json.load(response) or {})
            except HTTPError as error:
                # 409: the first request with this key is still in progress.
                content = error.read()
                assert error.code in (409, 429, 503), (path, error.code, content)
                self.retry(count, lock, f"answers {error.code}")
            except (URLError, OSError, HTTPException, ValueError):
                self.retry(count, lock, "broken connections")
        raise AssertionError(f"{path}: no answer after {RETRIES} tries")

    def retry(self, count: Counter, lock: Lock, why: str) -> None:
        with lock:
            count[why] += 1
        time.sleep(0.5)


@contextmanager
def talking(talkers: list[Talker], count: Counter) -> Iterator[None]:
    over, lock = Event(), Lock()
    failures: list[BaseException] = []

    def run(talker: Talker) -> None:
        try:
            talker.talk(over, count, lock)
        except BaseException as failure:
            failures.append(failure)

    threads = [Thread(target=run, args=(talker,)) for talker in talkers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


@pytest.fixture
def installation(tmp_path) -> Iterator[Installation]:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    answer = Answer("The platform team owns the cutover.", before=0.2, delay=0.1)
    with ScriptedModel(default=lambda request: answer) as model, server.attached(data_dir):
        yield Installation(
            os.environ
            | {
                "STRATA_DATA_DIR": str(data_dir),
                "DATABASE_URL": "",
                "CELERY_BROKER_URL": "",
                "STRATA_CHAT_MODEL": "openai-chat:scripted",
                "STRATA_SYSTEM_MODEL": "extractive",
                "STRATA_ADMIN_PASSWORD": PASSWORD,
                "OPENAI_BASE_URL": model.base_url,
                "OPENAI_API_KEY": "test",
                "STRATA_OUTBOUND_ALLOW": "127.0.0.1",
            },
            tmp_path / "processes.log",
        )


@pytest.mark.parametrize("version", ["the version before", "0.1.0"])
def test_people_chat_while_the_version_changes(version, installation, tmp_path, report):
    if version == "the version before":
        old = code_before(MIGRATIONS, tmp_path / "old")
    elif has_commit(VERSION_0_1):
        old = code_of(VERSION_0_1, tmp_path / "old")
    else:
        pytest.skip("this checkout has no history")
    installation.manage(old, "prepare")
    token = installation.manage(old, "create_token", "admin")
    count: Counter[str] = Counter()
    talkers = [Talker(installation, token, number) for number in range(TALKERS)]
    with ExitStack() as new:
        with ExitStack() as before:
            first, second = (before.enter_context(ExitStack()) for _ in range(2))
            first.enter_context(installation.web(old))
            second.enter_context(installation.web(old))
            workers = before.enter_context(ExitStack())
            workers.enter_context(installation.worker(old))
            workers.enter_context(installation.process(old, "beat"))
            Api(installation.urls[0], token).call("POST", "projects/", {"name": "Upgrade"})
            with talking(talkers, count):
                time.sleep(PACE_S)
                start = time.monotonic()
                installation.manage(ROOT, "prepare")
                migrations_s = time.monotonic() - start
                time.sleep(PACE_S)
                new.enter_context(installation.worker(ROOT))
                for stopping in (first, second):
                    new.enter_context(installation.web(ROOT))
                    stopping.close()
                    time.sleep(PACE_S)
                workers.close()
                new.enter_context(installation.process(ROOT, "beat"))
                time.sleep(PACE_S)
        check_nothing_is_lost(Api(installation.urls[0], token), talkers)
    records = re.split(r"^(?=\d{4}-\d\d-\d\d )", installation.log.read_text(), flags=re.MULTILINE)
    errors = [it for it in records if "Traceback" in it and UNKNOWN_TASK not in it]
    if version == "0.1.0":
        errors = [e for e in errors if not (COLLISION_IN_0_1 in e and str(old) in e)]
    assert not errors, errors[0][:3_000]
    report({"preparation while the old version serves": f"{migrations_s:.1f} s"})
    report({what: str(number) for what, number in sorted(count.items())})


def check_nothing_is_lost(api: Api, talkers: list[Talker]) -> None:
    for talker in talkers:
        assert talker.sessions
        for session, questions in talker.sessions.items():
            messages = api.messages(session)
            assert [m["content"] for m in messages if m["role"] == "user"] == questions
            replies = [m["status"] for m in messages if m["role"] == "assistant"]
            # Besides those that were cut off, each of which was regenerated.
            replies = [status for status in replies if status != "interrupted"]
            assert replies == ["complete"] * len(questions)

    def is_remembered() -> bool:
        return all(
            api.call("GET", f"sessions/{session}/")["unsummarized_count"] == 0
            for talker in talkers
            for session, questions in talker.sessions.items()
            if questions
        )

    assert eventually(is_remembered, 120) is not None, "a chat was not summarised"
