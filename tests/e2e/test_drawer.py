"""The drawer beside a chat leaves room for its title and buttons."""

import pytest
from playwright.sync_api import expect

TITLE = "Wheelchair places on the MS Aurelia, and who checks them before each crossing"
MIN_TITLE_PX = 300
# Buttons and links of the bar of which another element covers the middle.
COVERED = """() => [...document.querySelectorAll(".bar :is(a, button)")]
    .filter((control) => control.checkVisibility())
    .filter((control) => {
      const { x, y, width, height } = control.getBoundingClientRect();
      const top = document.elementFromPoint(x + width / 2, y + height / 2);
      return !control.contains(top);
    })
    .map((control) => control.outerHTML)"""


@pytest.mark.parametrize("width", [1280, 1440])
def test_the_title_and_the_buttons_stay_visible(page, server, demo, width):
    chat = server.api("GET", f"projects/{demo}/sessions/")["results"][0]["id"]
    server.api("PATCH", f"sessions/{chat}/", {"title": TITLE})
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"/projects/{demo}/chats/{chat}/")
    title = page.get_by_role("heading", level=1)
    assert title.bounding_box()["width"] >= MIN_TITLE_PX

    page.get_by_role("link", name="Context").click()
    drawer = page.locator("[data-drawer]")
    expect(drawer.locator(".meter")).to_be_visible()
    assert title.bounding_box()["width"] >= MIN_TITLE_PX
    assert page.evaluate(COVERED) == []
    bar = page.locator(".bar").bounding_box()
    assert bar["x"] + bar["width"] <= drawer.bounding_box()["x"] + 1
