"""Record browser actions that no stored text may trigger."""

import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from playwright.sync_api import BrowserContext, Page, Request

from tests.hostile.payloads import MARK

WATCH = files("tests.hostile").joinpath("watch.js").read_text()


@dataclass
class Witness:
    """Watches every page of a context. `seen`: the (column, payload) of the texts that pages of it
    showed; `wrong`: what ran, what was asked of other hosts, and what stood in a page that runs or
    asks.
    """

    context: BrowserContext
    host: str
    payloads: set[tuple[int, int]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.expose_binding("strataWitness", self._report)
        self.context.add_init_script(WATCH)
        self.context.on("request", self._check_request)
        self.context.on("dialog", lambda dialog: self.wrong.append(f"dialog {dialog.message}"))
        # Whatever is asked of others does not leave.
        self.context.route(
            lambda address: not self._is_ours(address), lambda route: route.abort("blockedbyclient")
        )

    def _is_ours(self, address: str) -> bool:
        return address.startswith((f"{self.host}/", "data:image/", "about:blank", "blob:"))

    def _report(self, source: dict[str, Any], *what: object) -> None:
        self.wrong.append(f"{source['page'].url}: {json.dumps(what)}")

    def _check_request(self, request: Request) -> None:
        if not self._is_ours(request.url):
            self.wrong.append(f"asked {request.url}")

    def look(self, page: Page) -> None:
        """At what stands on the page now."""
        self.wrong += [f"{page.url}: {item}" for item in page.evaluate("strataLook()")]
        self.payloads |= {(int(a), int(b)) for a, b in MARK.findall(page.content())}
