"""Every page in either theme: nothing that axe-core finds against WCAG; and, on request, pictures.

STRATA_SCREENSHOTS names the folder that takes the pictures, wide and narrow.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.e2e.pages import addresses

AXE = (Path(__file__).parent / "axe/axe.min.js").read_text()
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PICTURES = os.environ.get("STRATA_SCREENSHOTS", "")
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def paths(server, demo) -> dict[str, str]:
    return dict(addresses(server, demo))


def violations(page: Page) -> list[str]:
    found = page.evaluate(
        """(tags) => axe.run(document, { runOnly: tags }).then(({ violations }) => violations)""",
        WCAG,
    )
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary'].splitlines()[1:2]}"
        for one in found
        for node in one["nodes"]
    ]


@pytest.mark.timeout(600)
def test_no_page_shuts_anybody_out(open_page, sign_in, paths):
    found = []
    for theme in ("light", "dark"):
        page = open_page(color_scheme=theme, viewport=WIDE, bypass_csp=True)
        page.add_init_script(AXE)
        sign_in(page)
        for name, path in paths.items():
            page.goto(path)
            if PICTURES:
                _draw(page, f"{name}-{theme}")
            found += [f"{name}, {theme}: {wrong}" for wrong in violations(page)]
    # Of the page that is not there.
    open_page.complaints.clear()
    assert not found, "\n".join(found)


def _draw(page: Page, name: str) -> None:
    for width, size in (("wide", WIDE), ("narrow", NARROW)):
        page.set_viewport_size(size)
        page.screenshot(path=Path(PICTURES) / f"{name}-{width}.png", animations="disabled")
    page.set_viewport_size(WIDE)
