"""While one project's owner attacks, others are answered and their memory is written."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.cookiejar import CookieJar
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener, urlopen

import pytest

from chat.templatetags.markup import LEXERS
from tests.bounds.test_persona_bounds import BOMB, CONDITIONS, HOSTILE
from tests.bounds.test_stalls import UNITS
from tests.scripted import ScriptedModel
from tests.server import PASSWORD, Installation, installed
from tests.torture.clients import Api
from tests.torture.running_strata import LONG_AGO, Whole, eventually, everything

# On a machine that has no other work. Busier machines are given as many times as long.
HEALTH_S, PAGE_S, SUMMARY_S = 1, 3, 60
PROBE_INTERVAL_S = 0.2
# At the same time, as a client that does not wait.
AT_ONCE = 4
MAKE_USERS = """
from django.contrib.auth.models import User
from projects.models import Membership, Token
from projects.services import create_project
for name in ("mallory", "eve", "olive"):
    user = User.objects.create_user(name, password={password!r})
    create_project(user, name="Project", slug=name)
    print(Token.issue(user)[1])
Membership.objects.create(project=user.memberships.get().project, user_id=user.pk - 2, role="owner")
"""


class Watch:
    """Asks for the health and for a page of another user, from `with` to its end.

    `health_s` and `page_s` are the longest that these took, in seconds.
    """

    def __init__(self, strata: Whole, page: str, browser: OpenerDirector) -> None:
        self._strata, self._page, self._browser = strata, page, browser
        self._over = Event()
        self.health_s = self.page_s = 0.0
        self._threads = [Thread(target=self._watch_health), Thread(target=self._watch_page)]

    def __enter__(self) -> "Watch":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _watch_health(self) -> None:
        while not self._over.wait(PROBE_INTERVAL_S):
            began = monotonic()
            urlopen(f"{self._strata.url}/healthz", timeout=120).close()
            self.health_s = max(self.health_s, monotonic() - began)

    def _watch_page(self) -> None:
        while not self._over.wait(PROBE_INTERVAL_S):
            began = monotonic()
            self._browser.open(f"{self._strata.url}{self._page}", timeout=120).close()
            self.page_s = max(self.page_s, monotonic() - began)


class Scene:
    """Mallory's project, which attacks, and Olive's, which must not notice."""

    def __init__(self, strata: Whole, mallory: Api, olive: Api) -> None:
        self.strata, self.mallory, self.olive = strata, mallory, olive
        self._numbers = count(1)
        self.browser = browser_of(strata, "olive")
        self.attacker = browser_of(strata, "mallory")
        self.session = self.chat(olive, "olive")
        self.olive.call("POST", f"sessions/{self.session}/messages/", message("Our cutover."))

    def chat(self, api: Api, slug: str) -> str:
        path = f"projects/{slug}/sessions/"
        return str(api.call("POST", path, {"title": f"Chat {next(self._numbers)}"})["id"])

    def summarise(self, api: Api, slug: str) -> Callable[[], bool]:
        """Have a new conversation summarised; return whether its entry was written."""
        session = self.chat(api, slug)
        api.call("POST", f"sessions/{session}/messages/", message("The cutover is in March."))
        api.call("POST", f"sessions/{session}/summarize/")
        path = f"projects/{slug}/memory/entries/?granularity=conversation"
        return lambda: any(entry["covers"]["session"] == session for entry in everything(api, path))

    def during(self, name: str, attack: Callable[[], None]) -> None:
        """Run `attack`, and assert that nobody waits for it."""
        page = f"/projects/olive/chats/{self.session}/"
        with ThreadPoolExecutor() as pool, Watch(self.strata, page, self.browser) as watch:
            attacking = pool.submit(attack)
            is_written = self.summarise(self.olive, "olive")
            took = eventually(is_written, SUMMARY_S * allowance())
            attacking.result()
            factor = allowance()
        print(
            f"{name}: health {watch.health_s:.2f} s, page {watch.page_s:.2f} s, "
            f"summary {took or -1:.0f} s, at load {os.getloadavg()[0]:.0f}"
        )
        assert took is not None
        assert watch.health_s < HEALTH_S * factor
        assert watch.page_s < PAGE_S * factor


def allowance() -> float:
    return max(1, os.getloadavg()[0] / (os.cpu_count() or 1))


def message(content: str) -> dict:
    return {"content": content, "reply": False, "created_at": LONG_AGO}


def of_chars(unit: str, chars: int) -> str:
    return unit * (chars // len(unit))


def new_browser() -> OpenerDirector:
    return build_opener(HTTPCookieProcessor(CookieJar()))


def browser_of(strata: Whole, name: str) -> OpenerDirector:
    """Return a browser in which `name` is signed in."""
    browser = new_browser()
    form = {"username": name, "password": PASSWORD}
    send(browser, f"{strata.url}/accounts/login/", form)
    return browser


def send(browser: OpenerDirector, url: str, form: dict[str, str]) -> int:
    """Return the status of a form that is sent with its token."""
    with suppress(HTTPError):
        browser.open(url).close()
    [jar] = [one.cookiejar for one in browser.handlers if isinstance(one, HTTPCookieProcessor)]
    token = next((cookie.value for cookie in jar if cookie.name == "csrftoken"), "") or ""
    data = urlencode(form | {"csrfmiddlewaretoken": token}).encode()
    try:
        with browser.open(url, data, timeout=120) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def status_of(api: Api, method: str, path: str, body: object) -> int:
    """Return the status of any answer."""
    headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
    asked = Request(f"{api.url}{path}", json.dumps(body).encode(), headers, method=method)
    try:
        with urlopen(asked, timeout=120) as answer:
            answer.read()
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.fixture(scope="module")
def installation(tmp_path_factory) -> Iterator[Installation]:
    folder: Path = tmp_path_factory.mktemp("strata-attacks")
    with ScriptedModel() as model, installed(folder, model) as made:
        yield made


@pytest.fixture(scope="module")
def scene(installation) -> Iterator[Scene]:
    made = installation.manage("shell", "-v0", "-c", MAKE_USERS.format(password=PASSWORD))
    mallory, _eve, olive = made.splitlines()
    with Whole(installation) as strata:
        yield Scene(strata, Api(strata.url, mallory), Api(strata.url, olive))


def test_requests_of_openai_clients(scene, scale):
    """Each continues a conversation that is stored, so that its last message is compared."""

    def attack() -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            statuses = list(pool.map(ask, UNITS * scale(5, 1)))
        assert set(statuses) == {200}

    def ask(unit: str) -> int:
        first = {"role": "user", "content": f"Hello {unit}"}
        body = {"model": "mallory", "messages": [first]}
        assert status_of(scene.mallory, "POST", "/v1/chat/completions", body) == 200
        more = [{"role": "assistant", "content": "Scripted."}]
        more += [{"role": "user", "content": f"Hello {of_chars(unit, 30_000)}"}]
        body = {"model": "mallory", "messages": [first, *more]}
        return status_of(scene.mallory, "POST", "/v1/chat/completions", body)

    scene.during("requests of 30 KB", attack)


def test_pages_with_hostile_code(scene, scale):
    session = scene.chat(scene.mallory, "mallory")
    path = f"sessions/{session}/messages/"
    for name in ("cpp-objdump", *sorted(LEXERS)):
        code = "".join(of_chars(unit, 300) for unit in UNITS)
        scene.mallory.call("POST", path, message(f"```{name}\n{code}\n```"))
    scene.mallory.call("POST", path, message(f"```cpp-objdump\n{of_chars('0 ', 9_000)}\n```"))
    page = f"{scene.strata.url}/projects/mallory/chats/{session}/"

    def attack() -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in range(scale(50, 3)):
                list(pool.map(lambda _: scene.attacker.open(page).close(), range(AT_ONCE)))

    scene.during("pages with hostile code", attack)


def test_hostile_personas(scene):
    personas = [*HOSTILE, *(condition.replace("#", BOMB) for condition in CONDITIONS)]
    settings = f"{scene.strata.url}/projects/mallory/settings/"
    session = scene.chat(scene.mallory, "mallory")

    def attack() -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            statuses = list(pool.map(save, personas))
        forms = ({"instructions": persona} for persona in personas[::20])
        statuses += [send(scene.attacker, settings, form) for form in forms]
        assert set(statuses) <= {200, 400}, statuses

    def save(persona: str) -> int:
        body = {"instructions": persona}
        status = status_of(scene.mallory, "PATCH", "/api/v1/projects/mallory/", body)
        if status == 200:
            scene.mallory.call("GET", f"sessions/{session}/prompt/")
        return status

    scene.during(f"{len(personas)} personas", attack)


def test_hostile_messages_before_summaries(scene, scale):
    sessions = [scene.chat(scene.mallory, "mallory") for _ in UNITS]
    chars = scale(400_000, 100_000)
    path = "projects/mallory/memory/entries/?granularity=conversation"

    def attack() -> None:
        for session, unit in zip(sessions, UNITS, strict=True):
            for _ in range(2):
                text = message(f"A{of_chars(unit, chars)}A")
                scene.mallory.call("POST", f"sessions/{session}/messages/", text)
            scene.mallory.call("POST", f"sessions/{session}/summarize/")

    scene.during("two hostile messages before each summary", attack)
    assert eventually(lambda: bool(everything(scene.mallory, path)), 60) is not None


def test_links_of_those_who_left(scene, installation):
    """Mallory, who owns Olive's project too, keeps links; the account of one is switched off."""
    links = [
        scene.mallory.call("POST", f"projects/{slug}/invitations/", {"role": "owner"})["link"]
        for slug in ("olive", "mallory")
    ]
    visitor = browser_of(scene.strata, "eve")
    scene.olive.call("DELETE", "projects/olive/members/mallory/")
    installation.manage(
        "shell", "-v0", "-c",
        "from django.contrib.auth.models import User\n"
        "User.objects.filter(username='mallory').update(is_active=False)",
    )  # fmt: skip

    def attack() -> None:
        for link in links:
            for browser in (visitor, scene.attacker, new_browser()):
                with suppress(HTTPError):
                    browser.open(link).close()
                assert send(browser, f"{scene.strata.url}/join/", {}) in (404, 410)
                # By a new account.
                form = {"username": "trudy", "password1": PASSWORD, "password2": PASSWORD}
                send(browser, f"{scene.strata.url}/accounts/signup/", form)

    scene.during("links of those who left", attack)
    members = scene.olive.call("GET", "projects/olive/members/")["results"]
    assert [member["username"] for member in members] == ["olive"]
    projects = installation.manage(
        "shell", "-v0", "-c",
        "from projects.models import Membership\n"
        "print(sorted(Membership.objects.values_list('user__username', 'project__slug')))",
    )  # fmt: skip
    assert projects == "[('eve', 'eve'), ('mallory', 'mallory'), ('olive', 'olive')]"
