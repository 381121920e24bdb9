"""The list of chats beside a page, in a project of five hundred."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

CHATS = 500
# Of a page of a chat that nothing is cached of: the page, its style, script and icon, its stream.
MAX_REQUESTS = 12


@pytest.fixture
def many(page, server, begin, tmp_path) -> Page:
    begin(page)
    slug = page.url.rstrip("/").rpartition("/")[2]
    file = tmp_path / "talk.jsonl"
    lines = [
        {
            "session": f"s{number}",
            "role": "user",
            "content": f"Talk {number:03}",
            "created_at": f"2026-03-01T{number // 60:02}:{number % 60:02}:00Z",
        }
        for number in range(CHATS)
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    server.manage("import_conversations", str(file), "--project", slug, "--owner", "admin")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.reload()
    return page


def _sidebar(page: Page) -> dict[str, object]:
    """How many chats are seen as a whole, and where each link of the sidebar is."""
    found: dict[str, object] = page.evaluate(
        """() => {
            const { bottom } = document.querySelector("nav.chats").getBoundingClientRect();
            const tops = (links) => [...document.querySelectorAll(links)]
                .map((link) => link.getBoundingClientRect());
            return {
                whole: tops(".chat-line").filter((box) => box.bottom <= bottom).length,
                places: tops(".side a").map(({ top, left, width }) => [top, left, width]),
            };
        }"""
    )
    return found


def test_older_chats_come_as_one_scrolls_and_stay_when_somebody_says_something(many, server, say):
    chats = many.locator(".chats .chat-line")
    expect(chats).to_have_count(40)
    before = _sidebar(many)
    assert before["whole"] >= 10
    many.get_by_role("link", name="Settings").click()
    expect(many.get_by_role("heading", level=1)).to_have_text("Settings")
    assert _sidebar(many) == before
    requests = []
    many.on("request", lambda request: requests.append(request))
    with many.expect_request("**/events/**"):
        chats.first.locator(".item").click()
    expect(many.locator(".chats [aria-current]")).to_have_count(1)
    many.wait_for_load_state("load")
    assert 4 <= len(requests) <= MAX_REQUESTS, [request.url for request in requests]
    assert requests[0].response().headers["content-encoding"] == "gzip"
    many.evaluate(
        "window.slow = []; new PerformanceObserver((list) => "
        "window.slow.push(...list.getEntries().map((one) => one.duration)))"
        ".observe({ entryTypes: ['longtask'] })"
    )
    nav = many.locator("nav.chats")
    for count in (240, 440, CHATS):
        nav.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
        expect(chats).to_have_count(count)
    expect(many.locator(".chats [aria-current]")).to_have_count(1)
    expect(many.locator("[data-more-chats]")).to_have_count(0)
    titles = chats.locator(".item").all_text_contents()
    numbers = [int(re.sub(r"\D", "", title)) for title in titles]
    assert numbers == list(reversed(range(CHATS)))
    print("long tasks, in milliseconds:", many.evaluate("window.slow"))

    server.model.say("Yes.")
    say(many, "Is that all?")
    expect(many.locator(".turn").last).to_contain_text("Yes.")
    expect(many.locator("[aria-busy]")).to_have_count(0)
    expect(chats).to_have_count(CHATS)
    assert nav.evaluate("(box) => box.scrollTop") > 0
