"""Every page in either theme: nothing that axe-core finds against WCAG, nothing that is wider than
a telephone; and, on request, pictures.

STRATA_SCREENSHOTS names the folder that takes the pictures, wide and narrow.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize

from tests.e2e.pages import addresses

AXE = (Path(__file__).parent / "axe/axe.min.js").read_text()
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# By what each is looked through: in the dark nothing but colours differs.
THEMES = {"light": WCAG, "dark": ["color-contrast", "link-in-text-block"]}
PICTURES = os.environ.get("STRATA_SCREENSHOTS", "")
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
WINDOW = {"width": 1280, "height": 800}
SMALLEST = {"width": 320, "height": 568}
# A window of 1280 by 800 pixels, enlarged to 200 %.
ENLARGED = {"width": 640, "height": 400}
# Times the size of all text, in a window of normal size.
LARGER_TEXT = "200%"


# Controls that are beside the window with no way to scroll there, and those in the window whose
# middle shows something else that does not move as one scrolls; and too little room for the text.
COVERED = """() => {
    const around = (one) => one ? [one, ...around(one.parentElement)] : [];
    const scrolls = (one) => getComputedStyle(one).overflow !== "visible";
    const sticks = (one) => getComputedStyle(one).position === "sticky";
    const wrong = [...document.querySelectorAll("a, button, input, select, textarea, summary")]
        .filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
        .filter((one) => !one.matches(".skip") && !one.closest(".hidden"))
        .filter((one) => {
            const { left, top, right, width, height } = one.getBoundingClientRect();
            const [x, y] = [left + width / 2, top + height / 2];
            const boxes = around(one.parentElement).filter(scrolls);
            if (left < -1 || right > innerWidth + 1)
                return !boxes.some((box) => box.scrollWidth > box.clientWidth + 1);
            const isSeen = x > 0 && y > 0 && y < innerHeight && boxes.every((box) => {
                const frame = box.getBoundingClientRect();
                return x > frame.left && x < frame.right && y > frame.top && y < frame.bottom;
            });
            const shown = isSeen && document.elementFromPoint(x, y);
            return shown && !one.contains(shown) && !shown.contains(one)
                && ![...one.labels ?? []].some((label) => label.contains(shown))
                && !around(shown).some(sticks);
        })
        .map((one) => `${one.outerHTML.slice(0, 100)} is covered or cut`);
    const room = document.querySelector("[data-scroll]")?.clientHeight ?? innerHeight;
    return room < 100 ? [...wrong, `${room} pixels for the text`] : wrong;
}"""


@pytest.fixture
def paths(server, demo) -> dict[str, str]:
    return dict(addresses(server, demo))


def violations(page: Page, only: list[str] = WCAG) -> list[str]:
    """What axe-core finds by the rules of `only`: names of rules, or tags that they bear."""
    problems = page.evaluate(
        """(only) => axe.run(document, { runOnly: only }).then(({ violations }) => violations)""",
        only,
    )
    return [
        f"{problem['id']}: {node['html'][:200]} {node['failureSummary'].splitlines()[1:2]}"
        for problem in problems
        for node in problem["nodes"]
    ]


@pytest.mark.timeout(600)
def test_no_page_shuts_anybody_out(open_page, sign_in, paths):
    problems = []
    page = open_page(viewport=WIDE)
    page.add_init_script(AXE)
    sign_in(page)
    for name, path in paths.items():
        page.goto(path)
        noted = len(open_page.complaints)
        for theme, rules in THEMES.items():
            show(page, theme)
            if PICTURES:
                _draw(page, f"{name}-{theme}")
            problems += [f"{name}, {theme}: {wrong}" for wrong in violations(page, rules)]
        problems += [f"{name}, narrow: {wrong}" for wrong in stretched(page, SMALLEST)]
        problems += [f"{name}, enlarged: {wrong}" for wrong in stretched(page, ENLARGED)]
        if not path.startswith("/admin/"):
            page.evaluate(f"document.documentElement.style.fontSize = '{LARGER_TEXT}'")
            problems += [f"{name}, larger text: {wrong}" for wrong in stretched(page, WINDOW)]
        # axe-core applies styles, which the content security policy forbids.
        del open_page.complaints[noted:]
    missing = paths["nothing-there"]
    open_page.complaints[:] = [one for one in open_page.complaints if missing not in one]
    assert not problems, "\n".join(problems)


def test_the_groups_of_an_account_are_readable_in_the_admin(open_page, sign_in):
    page = open_page(viewport=WIDE)
    page.add_init_script(AXE)
    sign_in(page)
    page.goto("/admin/auth/user/1/change/")
    for theme in THEMES:
        show(page, theme)
        noted = len(open_page.complaints)
        assert violations(page, ["color-contrast"]) == []
        del open_page.complaints[noted:]


def stretched(page: Page, size: ViewportSize) -> list[str]:
    """What would have to be scrolled sideways in a window of the size to be seen, and buttons and
    links that something covers.
    """
    page.set_viewport_size(size)
    wide = page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll(".scroll")]
            .filter((one) => one.scrollWidth > one.clientWidth + 1)
            .map((one) => `${one.localName}.${one.className} is ${one.scrollWidth} wide`)"""
    )
    if covered := page.evaluate(COVERED):
        # The page may not have settled in its new size.
        page.wait_for_timeout(500)
        covered = page.evaluate(COVERED)
    page.set_viewport_size(WIDE)
    return [*wide, *covered]


def show(page: Page, theme: str) -> None:
    """In the theme, and not on the way to it."""
    page.emulate_media(color_scheme=theme)
    page.evaluate("document.getAnimations().forEach((one) => one.cancel())")


def _draw(page: Page, name: str) -> None:
    for width, size in (("wide", WIDE), ("narrow", NARROW)):
        page.set_viewport_size(size)
        page.screenshot(path=Path(PICTURES) / f"{name}-{width}.png", animations="disabled")
    page.set_viewport_size(WIDE)
