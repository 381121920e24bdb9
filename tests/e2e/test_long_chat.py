"""A chat of a thousand messages: the latest are there at once, earlier ones as one scrolls up."""

import json

import pytest
from playwright.sync_api import Page, expect

MESSAGES = 1_000
A_PAGE = 50


@pytest.fixture
def long(page, server, begin, tmp_path) -> Page:
    begin(page)
    slug = page.url.rstrip("/").rpartition("/")[2]
    file = tmp_path / "talk.jsonl"
    lines = [
        {
            "session": "a",
            "role": ("user", "assistant")[number % 2],
            "content": f"This is message {number} of them.",
            "created_at": f"2026-03-{1 + number // 40:02}T09:{number % 40:02}:00Z",
        }
        for number in range(MESSAGES)
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    server.manage("import_conversations", str(file), "--project", slug, "--owner", "admin")
    page.reload()
    page.locator("main .rows a").first.click()
    expect(page.get_by_text("This is message 999 of them.")).to_be_visible()
    return page


def test_earlier_messages_come_as_one_scrolls_up(long):
    turns = long.locator("[data-turns] > [data-turn]")
    expect(turns).to_have_count(A_PAGE)
    long.locator("[data-scroll]").evaluate("(box) => { box.scrollTop = 0; }")
    expect(turns).not_to_have_count(A_PAGE)
    numbers = turns.evaluate_all("(all) => all.map((one) => Number(one.id.slice(1)))")
    assert numbers == list(range(MESSAGES - len(numbers) + 1, MESSAGES + 1))
    days = long.locator("[data-turns] .date").all_inner_texts()
    assert len(days) == len(set(days))
    # What was read has not moved away.
    assert long.locator("[data-scroll]").evaluate("(box) => box.scrollTop") > 0


def test_older_messages_stay_when_a_new_one_arrives(long, server, say):
    turns = long.locator("[data-turns] > [data-turn]")
    long.locator(".earlier a").click()
    expect(turns).not_to_have_count(A_PAGE)
    long.wait_for_timeout(300)
    before = turns.count()
    server.model.say("Yes.")
    say(long, "Is that all?")
    expect(turns.last).to_contain_text("Yes.")
    expect(long.locator("[aria-busy]")).to_have_count(0)
    expect(turns).to_have_count(before + 2)


def test_older_messages_stay_when_an_earlier_update_arrives(long, server):
    late = []

    def hold_the_first(route):
        if late:
            route.continue_()
        else:
            late.append((route, route.fetch()))

    long.route("**/*part=turns*", hold_the_first)
    chat = long.url.split("/chats/")[1].split("/")[0]
    server.api("PATCH", f"sessions/{chat}/", {"title": "A long one"})
    while not late:
        long.wait_for_timeout(50)
    turns = long.locator("[data-turns] > [data-turn]")
    long.locator(".earlier a").click()
    expect(turns).not_to_have_count(A_PAGE)
    [(route, response)] = late
    route.fulfill(response=response)
    expect(long.get_by_role("heading", level=1)).to_have_text("A long one")
    assert turns.count() > A_PAGE
