"""A chat is renamed in its heading."""

import re

from playwright.sync_api import Page, expect


def title(page: Page):
    return page.locator("[data-chat-title]")


def rename(page: Page, text: str, key: str) -> None:
    page.get_by_role("button", name="Rename chat").click()
    field = page.locator("[data-rename-form] input[name=title]")
    field.fill(text)
    field.press(key)


def test_the_heading_is_edited_in_place(two, server):
    mine, theirs = two
    mine.evaluate("window.here = true")
    rename(mine, "The <b>cutover</b>", "Enter")
    for page in two:
        expect(title(page)).to_have_text("The <b>cutover</b>")
    expect(mine).to_have_title(re.compile("The <b>cutover</b>"))
    expect(mine.locator(".chats [aria-current]")).to_have_text("The <b>cutover</b>")
    assert mine.evaluate("window.here")
    rename(mine, "Something else", "Escape")
    expect(title(mine)).to_be_visible()
    expect(title(mine)).to_have_text("The <b>cutover</b>")
    # Who may not manage the chat sees no button.
    expect(theirs.get_by_role("button", name="Rename chat")).to_have_count(0)
    number = re.search(r"/chats/([0-9a-f-]+)/", mine.url)[1]
    assert server.api("GET", f"sessions/{number}/")["title"] == "The <b>cutover</b>"
