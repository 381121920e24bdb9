"""Every page of the hostile project, and every list and page of the admin."""

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from django.apps import apps
from playwright.sync_api import Page

from tests.hostile.payloads import PAYLOADS
from tests.hostile.script_monitor import Witness

# Of the admin's lists, those of texts that a page of Strata shows, too.
PLANTED_NAMES = (
    "user session message attachment import entry fact block webhook project token".split()
)


def pages(world: dict[str, Any]) -> Iterator[str]:
    """The paths of the pages that show most of what was planted."""
    project = f"/projects/{world['slug']}"
    memory = f"{project}/memory"
    chat = f"{project}/chats/{world['chat']}/"
    yield from ("/?all", "/account/tokens/", f"{project}/overview/", chat, f"{chat}prompt/")
    yield from (f"{project}/notes/", f"{memory}/?tree", f"{memory}/review/", f"{memory}/facts/")
    yield from (f"{memory}/activity/", f"{memory}/blocks/", f"{project}/imports/")
    yield from (f"{project}/settings/", f"{project}/settings/webhooks/")
    yield f"{memory}/{world['entries'][-1]}/"
    yield f"/messages/{world['messages'][0]}/revisions/"
    yield f"{project}/files/"


def more_pages(world: dict[str, Any]) -> Iterator[str]:
    """The paths of all others."""
    project = f"/projects/{world['slug']}"
    memory = f"{project}/memory"
    chat = f"{project}/chats/{world['chat']}/"
    yield from (f"{project}/", f"{chat}keep/", f"{chat}delete/", f"{memory}/", f"{project}/me/")
    yield from (f"{memory}/?at=2026-06-01", f"{memory}/review/?state=hidden", f"{memory}/forget/")
    yield f"{memory}/forget/?session={world['chat']}"
    for pk in world["entries"]:
        yield from (f"{memory}/{pk}/", f"{memory}/forget/?entry={pk}")
    for pk in world["facts"]:
        yield from (f"{memory}/facts/{pk}/", f"{memory}/forget/?fact={pk}")
    for pk in world["files"]:
        yield from (f"{project}/files/{pk}/", f"{memory}/forget/?file={pk}")
    for pk in world["webhooks"]:
        yield f"{project}/settings/webhooks/{pk}/"
    for pk in world["messages"]:
        yield from (f"/messages/{pk}/edit/", f"/messages/{pk}/delete/")
        yield f"{memory}/forget/?message={pk}"
    for pk in world["receipts"]:
        yield f"{memory}/receipts/{pk}/"


def echo_paths(world: dict[str, Any], payload: int) -> Iterator[str]:
    """The paths of the pages that say again what they were asked for."""
    words = quote(PAYLOADS[payload])
    project = f"/projects/{world['slug']}"
    memory = f"{project}/memory"
    yield from (f"{project}/search/?q={words}", f"{project}/?q={words}", f"/?q={words}")
    yield from (f"{memory}/facts/?q={words}", f"{project}/notes/?q={words}&author={words}")
    yield f"{project}/files/?q={words}"
    yield from (f"{memory}/review/?words={words}&state={words}", f"{memory}/?at={words}")
    yield from (f"{project}/jump/?q={words}", f"/{words}")


def look_at(page: Page, witness: Witness, paths: Iterable[str]) -> int:
    """Opens each page, has the witness look at it, and returns how many there were."""
    number = 0
    for path in paths:
        page.goto(path)
        witness.look(page)
        number += 1
    return number


def admin(page: Page) -> list[str]:
    """The lists of the admin, and the first thing of each."""
    page.goto("/admin/")
    lists: list[str] = page.locator("#content-main th a").evaluate_all(
        "all => all.map(one => one.pathname)"
    )
    names_found = []
    for path in lists:
        page.goto(path)
        first = page.locator("#result_list tbody th a").first
        if first.count():
            names_found.append(first.evaluate("one => one.pathname"))
    return [*lists, *names_found]


def admin_lists(names: Iterable[str]) -> Iterator[str]:
    """Those of these models."""
    models = {model._meta.model_name: model._meta for model in apps.get_models()}
    return (f"/admin/{models[name].app_label}/{name}/" for name in names)


def enter(page: Page, world: dict[str, Any], url: str) -> None:
    """Signs in who owns the project."""
    page.context.add_cookies([{"name": "sessionid", "value": world["cookie"], "url": url}])


def create_world(server: Any, step: int) -> dict[str, Any]:
    """The hostile project, in a running server, planted from the first payload on."""
    program = (
        "import json;"
        "from tests.hostile.text_placement import plant; from tests.hostile.world import make;"
        f"told = make(); plant(json.loads(told)['user'], first=0, step={step}); print(told)"
    )
    return dict(json.loads(_run(server, program)))


def planted(server: Any, world: dict[str, Any], first: int, step: int) -> None:
    _run(
        server,
        "from tests.hostile.text_placement import plant;"
        f"plant({world['user']}, first={first}, step={step})",
    )


def removed(server: Any, world: dict[str, Any]) -> None:
    _run(server, f"from tests.hostile.world import remove; remove({world['user']})")


def _run(server: Any, program: str) -> str:
    printed: str = server.manage("shell", "-v", "0", "-c", program)
    return printed.splitlines()[-1] if printed else ""
