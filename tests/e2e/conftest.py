"""A whole Strata in processes of its own, and a browser to look at it. No ORM here."""

import json
import re
import shutil
from asyncio import AbstractEventLoop, get_running_loop
from asyncio.events import _set_running_loop
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.membership import join
from tests.scripted import ScriptedModel
from tests.server import PASSWORD, Web, installed
from tests.torture.clients import Api

# The first that is here. Without a window to be drawn it takes half the processor.
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
# Milliseconds, for what is waited for: a machine may have much else to do.
PATIENCE = 30_000
expect.set_options(timeout=PATIENCE)


@dataclass(frozen=True)
class Server:
    """A running Strata with the users `admin` and `edgar`, and the model that answers in it.

    `token` opens the API for `admin`; `manage` runs a command of manage.py beside it.
    """

    url: str
    model: ScriptedModel
    token: str
    manage: Callable[..., str]
    edgars_token: str

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Does as `admin` what a program would, and returns the answer's JSON, if it has any."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        http_request = Request(f"{self.url}/api/v1/{path}", data, headers, method=method)
        with urlopen(http_request, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else None


@pytest.fixture(scope="session")
def running(tmp_path_factory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("strata-e2e")
    with ScriptedModel() as model, installed(data_dir, model) as strata, Web(strata) as web:
        account = ("--username=edgar", "--email=edgar@example.org")
        strata.manage("createsuperuser", "--noinput", "--verbosity=0", *account)
        edgars_token = strata.manage("create_token", "edgar")
        yield Server(web.url, model, strata.token, strata.manage, edgars_token)


@pytest.fixture
def server(running: Server) -> Server:
    """The running Strata, its model with nothing scripted."""
    running.model.reset()
    return running


@pytest.fixture(scope="session")
def started() -> Iterator[tuple[Browser, AbstractEventLoop]]:
    """A browser, and the event loop that Playwright leaves running in this thread."""
    with sync_playwright() as playwright:
        browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
        program = browser_path or playwright.chromium.executable_path
        if not Path(program).exists():
            pytest.skip("There is no Chromium: install it, or run `playwright install chromium`.")
        loop = get_running_loop()
        yield playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]), loop
        _set_running_loop(loop)


@pytest.fixture(scope="module")
def browser(started) -> Iterator[Browser]:
    """While a loop runs, Django refuses the ORM in this thread: out of sight of the tests of other
    modules, which ask the database, the loop is not there.
    """
    installation, loop = started
    _set_running_loop(loop)
    yield installation
    _set_running_loop(None)


@pytest.fixture(scope="session")
def demo(running: Server) -> str:
    """The slug of a demo project, all of it found by search. Others ask and change it, too."""
    slug = running.manage("make_demo", "--owner=admin")
    running.manage("reindex", f"--project={slug}")
    return slug


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator:
    """Opens pages in a browser of their own; keywords are Playwright's for a context.

    Whatever a page complains of in the console, such as a breach of the content security policy,
    fails the test, unless the test takes it out of `open_page.complaints`.
    """
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.text} {message.location['url']}")

    contexts, pages = [], []

    def make(**options) -> Page:
        context = browser.new_context(**{"base_url": server.url} | options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        pages.append(page)
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    make.complaints = complaints
    yield make
    for page in pages:
        # A request that is answered only now concerns nobody any more.
        page.unroute_all(behavior="ignoreErrors")
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def signed_in() -> dict[str, list]:
    """The cookies of those who signed in before, by name."""
    return {}


@pytest.fixture
def sign_in(signed_in):
    """Signs somebody in: the first time on the page that is there for it. Which page is open then
    is left to the test.
    """

    def enter(page: Page, name: str = "admin") -> None:
        if name in signed_in:
            page.context.add_cookies(signed_in[name])
            return
        page.goto("/")
        page.get_by_label("Username").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("heading", name=re.compile("^Projects$|^Welcome")).wait_for()
        signed_in[name] = page.context.cookies()

    return enter


def created(server: Server) -> dict[str, Any]:
    """A new project of `admin`."""
    project: dict[str, Any] = server.api(
        "POST", "projects/", {"name": f"Billing {uuid4().hex[:6]}"}
    )
    return project


def talked(server: Server, project: dict[str, Any], question: str, answer: str) -> str:
    """Has `admin` begin a chat in it; returns the path of its page."""
    session = server.api("POST", f"projects/{project['slug']}/sessions/", {})["id"]
    server.model.say(answer)
    server.api("POST", f"sessions/{session}/messages/", {"content": question})
    return f"/projects/{project['slug']}/chats/{session}/"


@pytest.fixture
def begin(server):
    """Opens a new project of `admin` on `page`; returns its name."""

    def create(page: Page) -> str:
        project = created(server)
        page.goto(f"/projects/{project['slug']}/")
        expect(page.get_by_role("heading", name="New chat")).to_be_visible()
        return project["name"]

    return create


@pytest.fixture
def say():
    """Writes a message on `page` and sends it."""

    def enter(page: Page, text: str) -> None:
        box = page.get_by_label("Message", exact=True)
        box.wait_for()
        # Enter sends once the scripts of the page that has the box have run.
        page.wait_for_load_state()
        box.fill(text)
        box.press("Enter")

    return enter


@pytest.fixture
def two(open_page, sign_in, server) -> tuple[Page, Page]:
    """The same chat before `admin` and before `edgar`, an editor of its project."""
    mine, theirs = open_page(), open_page()
    sign_in(mine)
    sign_in(theirs, "edgar")
    project = created(server)
    join(Api(server.url, server.token), project["slug"], "edgar", server.edgars_token)
    path = talked(server, project, "Good morning", "Hello.")
    for page in (mine, theirs):
        page.goto(path)
        expect(page.locator(".turn")).to_have_count(2)
    return mine, theirs


@pytest.fixture
def page(open_page, sign_in) -> Page:
    """A page of somebody who is signed in."""
    opened = open_page()
    sign_in(opened)
    return opened


@pytest.fixture
def chat(page, server) -> Page:
    """A chat with one question and its answer."""
    page.goto(talked(server, created(server), "When is the cutover?", "On Monday."))
    expect(page.locator(".turn").nth(1)).to_contain_text("On Monday.")
    return page
