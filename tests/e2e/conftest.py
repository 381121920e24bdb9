"""A whole Strata in processes of its own, and a browser to look at it. No ORM here."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.scripted import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "pass-word-1"


@dataclass(frozen=True)
class Server:
    """A running Strata with the administrator `admin`, and the model that answers in it."""

    url: str
    model: ScriptedModel


@pytest.fixture(scope="session")
def running(tmp_path_factory) -> Iterator[Server]:
    from config import embedded

    data_dir = tmp_path_factory.mktemp("strata-e2e")
    # Attached, so that the commands below, which come and go, leave the database running.
    with embedded.attached(data_dir), ScriptedModel() as model:
        environment = os.environ | {
            "STRATA_DATA_DIR": str(data_dir),
            "STRATA_CHAT_MODEL": "openai-chat:scripted",
            "STRATA_SYSTEM_MODEL": "extractive",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "test",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
        }
        _manage(environment, "migrate", "--verbosity=0")
        account = ("--username=admin", "--email=admin@example.org")
        _manage(environment, "createsuperuser", "--noinput", "--verbosity=0", *account)
        with _web(environment, data_dir / "web.log") as url:
            yield Server(url, model)


@contextmanager
def _web(environment: dict[str, str], log: Path) -> Iterator[str]:
    """The web process from its first answer to its end; gives its address."""
    url = f"http://127.0.0.1:{_free_port()}"
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--log-level=warning"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, f"--port={url.rpartition(':')[2]}"],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        _wait_for(f"{url}/healthz", process, log)
        yield url
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def server(running: Server) -> Server:
    """The running Strata, its model with nothing scripted."""
    running.model.reset()
    return running


def _manage(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment, check=True)


def _free_port() -> int:
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            with closing(urlopen(url, timeout=2)):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"No answer from {url}:\n{log.read_text()}")


# While Playwright runs, its event loop makes Django refuse the ORM in this thread: it runs for one
# module and no longer, so that the tests after it may ask the database again.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        program = found or playwright.chromium.executable_path
        if not Path(program).exists():
            pytest.skip("There is no Chromium: install it, or run `playwright install chromium`.")
        yield playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator:
    """Opens pages in a browser of their own; keywords are Playwright's for a context.

    Whatever a page complains of in the console, such as a breach of the content security policy,
    fails the test.
    """
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    contexts = []

    def make(**options) -> Page:
        context = browser.new_context(base_url=server.url, **options)
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def sign_in():
    def enter(page: Page) -> None:
        page.goto("/")
        page.get_by_label("Username").fill("admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Projects").wait_for()

    return enter


@pytest.fixture
def page(open_page, sign_in) -> Page:
    """A page of somebody who is signed in."""
    opened = open_page()
    sign_in(opened)
    return opened
