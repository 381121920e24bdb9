"""A whole Strata in processes of its own, for tests that look at it from outside. No ORM here."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from fcntl import LOCK_EX, flock
from hashlib import sha256
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Protocol
from urllib.error import URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener, urlopen

import psycopg

from tests.commands import ROOT, Commands
from tests.shape import parts
from tests.shape.ports import reserved_port

PASSWORD = "pass-word-1"
# Migrating takes ten seconds, which no run of a single test should wait for.
CACHE = ROOT / ".pytest_cache/test-data"
# Where a data folder keeps a token of `admin`.
TOKEN = "token"


class Model(Protocol):
    """A server that speaks OpenAI's chat completions."""

    base_url: str


@dataclass(frozen=True)
class Installation:
    """A database with all tables and the administrator `admin`, and what its processes are told.

    `token` opens the API for `admin`.
    """

    data_dir: Path
    environment: dict[str, str]
    commands: Commands = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "commands", Commands(self.environment))

    @property
    def token(self) -> str:
        return (self.data_dir / TOKEN).read_text()

    def manage(self, *arguments: str) -> str:
        """Runs manage.py and returns what it printed."""
        return self.commands.run(*arguments).strip()


@contextmanager
def installed(data_dir: Path, model: Model) -> Iterator[Installation]:
    """A new Strata in `data_dir` whose chats `model` answers; its database runs until the end."""
    from config.postgres import server

    migrated_into(data_dir)
    # Attached, so that the commands, which come and go, leave the database running.
    with server.attached(data_dir), ExitStack() as stack:
        environment = _environment(data_dir, model.base_url)
        if parts.is_wanted():
            environment |= stack.enter_context(parts.in_front_of(data_dir))
        new_installation = Installation(data_dir, environment)
        stack.callback(new_installation.commands.end)
        yield new_installation


def migrated_into(data_dir: Path) -> None:
    """Puts a database with all tables, `admin` and a token of theirs into an empty data folder."""
    # Copied with owners and modes, because PostgreSQL insists on its own.
    subprocess.run(["cp", "-a", f"{migrated()}/.", data_dir], check=True)


def migrated() -> Path:
    """Return a data folder with a migrated database, the administrator `admin` and a token.

    Tests copy it. It is made again if a migration changes.
    """
    from config.postgres import server

    folder = CACHE / _digest()
    CACHE.mkdir(parents=True, exist_ok=True)
    with CACHE.with_suffix(".lock").open("w") as lock_file:
        flock(lock_file, LOCK_EX)
        if not folder.exists():
            for outdated in CACHE.iterdir():
                shutil.rmtree(outdated)
            draft = Path(tempfile.mkdtemp(prefix="strata-migrated-"))
            with server.attached(draft):
                host = quote(str(server.socket_directory(draft)), safe="")
                # Throw-away data need not reach the disk.
                with psycopg.connect(
                    f"postgresql://postgres@/postgres?host={host}", autocommit=True
                ) as connection:
                    connection.execute("ALTER SYSTEM SET fsync = off")
                    connection.execute("SELECT pg_reload_conf()")
                # A planted fault must not get into later runs.
                environment = _environment(draft, "") | {"STRATA_FAULT": ""}
                new_installation = Installation(draft, environment)
                new_installation.manage("migrate", "--verbosity=0")
                account = ("--username=admin", "--email=admin@example.org")
                new_installation.manage("createsuperuser", "--noinput", "--verbosity=0", *account)
                (draft / TOKEN).write_text(new_installation.manage("create_token", "admin"))
                new_installation.commands.end()
            # Copied with owners and modes, which a move to another file system would lose.
            subprocess.run(["cp", "-a", draft, folder.with_suffix(".new")], check=True)
            folder.with_suffix(".new").rename(folder)
            shutil.rmtree(draft)
    return folder


def _digest() -> str:
    """Return a digest of the files that decide what a new data folder contains."""
    digest = sha256()
    files = [ROOT / "requirements.txt", ROOT / "config/beat_schedule.py", Path(__file__)]
    for app in ("config", "projects", "chat", "memory"):
        files += sorted((ROOT / app / "migrations").glob("*.py"))
    files += sorted(path for path in (ROOT / "config/postgres").iterdir() if path.is_file())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _environment(data_dir: Path, model_url: str) -> dict[str, str]:
    return os.environ | {
        "STRATA_DATA_DIR": str(data_dir),
        "DATABASE_URL": "",
        "CELERY_BROKER_URL": "",
        "STRATA_CHAT_MODEL": "openai-chat:scripted",
        "STRATA_SYSTEM_MODEL": "extractive",
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "test",
        "STRATA_OUTBOUND_ALLOW": "127.0.0.1",
        "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
    }


class Web:
    """The web process of an installation: it starts and ends, or is killed, at one address.

    It gives way to others by `nice`; `variables` are set in its environment.
    """

    def __init__(
        self,
        installation: Installation,
        application: str = "config.asgi:application",
        nice: int = 0,
        **variables: str,
    ) -> None:
        self._installation = installation
        self._variables = variables
        self._reservation, self.port = reserved_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = installation.data_dir / "web.log"
        way = ["nice", "-n", str(nice)] if nice else []
        uvicorn = [*way, sys.executable, "-m", "uvicorn", application, "--log-level=warning"]
        self._command = [*uvicorn, f"--port={self.port}", "--timeout-graceful-shutdown=5"]

    def __enter__(self) -> "Web":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._reservation.close()

    def start(self) -> None:
        """Starts it and waits for its first answer."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=self._installation.environment | self._variables,
                stdout=output,
                stderr=output,
            )
        for _ in range(300):
            assert self._process.poll() is None, self.log.read_text()
            try:
                with closing(urlopen(f"{self.url}/healthz", timeout=2)):
                    return
            except (URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(f"No answer from {self.url}:\n{self.log.read_text()}")

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._process.kill()
        self._process.wait(20)

    @property
    def pid(self) -> int:
        return self._process.pid


def signed_in(web: Web, name: str) -> OpenerDirector:
    """A browser in which the user `name` is signed in."""
    jar = CookieJar()
    browser = build_opener(HTTPCookieProcessor(jar))
    url = f"{web.url}/accounts/login/"
    browser.open(url).close()
    [token] = [cookie.value for cookie in jar if cookie.name == "csrftoken"]
    form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token}
    browser.open(url, urlencode(form).encode()).close()
    return browser


@contextmanager
def worker(
    installation: Installation, *options: str, nice: int = 0, **variables: str
) -> Iterator[None]:
    """A Celery worker of an installation, of one process unless `options` say otherwise.

    It gives way to others by `nice`; `variables` are set in its environment.
    """
    from config.postgres import server

    if not parts.is_wanted():
        sockets = server.socket_directory(installation.data_dir)
        server.install_broker(server.broker_url(sockets))
    way = ["nice", "-n", str(nice)] if nice else []
    celery = [*way, sys.executable, "-m", "celery", "-A", "config", "--quiet", "worker"]
    with (installation.data_dir / "worker.log").open("ab") as output:
        process = subprocess.Popen(
            [*celery, *(options or ("--pool=solo",)), "-Q", "chat,memory,index,io,webhooks"],
            cwd=ROOT,
            env=installation.environment | variables,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def database_url(scheme: str = "postgresql") -> str:
    """The address of the test's own database."""
    from django.db import connection

    settings = connection.settings_dict
    port = f":{settings['PORT']}" if settings["PORT"] else ""
    return f"{scheme}://postgres@{quote(settings['HOST'], safe='')}{port}/{settings['NAME']}"
