"""How a chat is kept, changed by one while another has its page open."""

import re

import pytest
from playwright.sync_api import Page, expect

CLOSED = "This chat is closed"
GONE = "This chat was deleted, or you no longer have access to it."


@pytest.fixture
def mine(two) -> Page:
    return two[0]


@pytest.fixture
def theirs(two) -> Page:
    """The page of the other, who sees what happens without loading it anew."""
    two[1].evaluate("window.here = true")
    yield two[1]
    assert two[1].evaluate("window.here")


def api_path(page: Page) -> str:
    return f"sessions/{re.search(r'/chats/([0-9a-f-]+)/', page.url)[1]}/"


def box(page: Page):
    return page.get_by_label("Message", exact=True)


def closed(page: Page):
    return page.locator("[data-foot]").get_by_text(CLOSED)


def keep(page: Page, **fields: str) -> None:
    """Changes the settings of the chat."""
    page.get_by_role("button", name="Chat settings").click()
    for label, value in fields.items():
        page.get_by_label(label).select_option(value)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#chat-settings")).to_be_hidden()


def test_a_closed_chat_takes_no_more_until_it_is_open_again(mine, theirs, server, say):
    box(theirs).fill("Half a sent")
    theirs.locator(".turn").nth(1).hover()
    expect(theirs.get_by_role("button", name="Regenerate")).to_be_visible()
    keep(mine, Status="closed")
    for page in (mine, theirs):
        expect(closed(page)).to_be_visible()
        expect(box(page)).to_have_count(0)
        expect(page.get_by_role("button", name="Regenerate")).to_have_count(0)
    expect(theirs.get_by_text("Your draft is saved")).to_be_visible()
    # Who neither began it nor owns the project leaves it as it is.
    expect(theirs.get_by_role("button", name="Reopen")).to_have_count(0)

    mine.evaluate("window.here = true")
    mine.get_by_role("button", name="Reopen").click()
    expect(box(mine)).to_be_focused()
    expect(box(theirs)).to_have_value("Half a sent")
    assert mine.evaluate("window.here")
    for page in (theirs, mine):
        expect(closed(page)).to_have_count(0)
        server.model.say("Nine.")
        say(page, "When?")
        expect(page.locator(".turn").last).to_contain_text("Nine.")
        expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(theirs.locator(".turn")).to_have_count(6)


def test_typing_continues_at_the_same_place(mine, theirs, server):
    box(theirs).fill("Half a sent")
    server.api("POST", f"{api_path(mine)}close/")
    expect(closed(theirs)).to_be_visible()
    server.api("PATCH", api_path(mine), {"status": "active"})
    expect(box(theirs)).to_be_focused()
    theirs.keyboard.type("ence")
    expect(box(theirs)).to_have_value("Half a sentence")


def test_without_scripts_a_chat_is_opened_again(mine, open_page, sign_in, server):
    server.api("POST", f"{api_path(mine)}close/")
    page = open_page(java_script_enabled=False)
    sign_in(page)
    page.goto(mine.url)
    page.get_by_role("button", name="Reopen").click()
    expect(box(page)).to_be_visible()


def test_another_title_is_shown_wherever_the_title_is(mine, theirs, server):
    server.api("PATCH", api_path(mine), {"title": "Cutover $& plans"})
    expect(theirs.get_by_role("heading", level=1)).to_have_text("Cutover $& plans")
    expect(theirs).to_have_title(re.compile("^Cutover \\$& plans · "))
    chats = theirs.get_by_role("navigation", name="Chats")
    expect(chats.get_by_role("link", name="Cutover $& plans")).to_be_visible()
    expect(chats.get_by_role("link", name="Good morning")).to_have_count(0)
    # And in the settings of who may change them, as long as they do not fill them in.
    expect(mine.get_by_role("heading", level=1)).to_have_text("Cutover $& plans")
    mine.get_by_role("button", name="Chat settings").click()
    expect(mine.get_by_label("Title")).to_have_value("Cutover $& plans")


def test_settings_that_are_being_filled_in_are_left_alone(mine, theirs, server):
    mine.get_by_role("button", name="Chat settings").click()
    mine.get_by_label("Title").fill("Mine")
    server.api("PATCH", api_path(mine), {"title": "Theirs"})
    expect(mine.get_by_role("heading", level=1)).to_have_text("Theirs")
    expect(mine.get_by_label("Title")).to_have_value("Mine")


def test_an_archived_chat_leaves_the_list_and_says_so(mine, theirs, server):
    chats = theirs.get_by_role("navigation", name="Chats")
    expect(chats.get_by_role("link", name="Good morning")).to_be_visible()
    server.api("PATCH", api_path(mine), {"archived": True, "remembered": False})
    expect(theirs.get_by_text("archived", exact=True)).to_be_visible()
    expect(theirs.locator(".bar").get_by_text("not remembered")).to_be_visible()
    expect(chats.get_by_role("link", name="Good morning")).to_have_count(0)
    server.api("PATCH", api_path(mine), {"archived": False})
    expect(chats.get_by_role("link", name="Good morning")).to_be_visible()


def test_a_reader_who_lost_access_sees_a_notice_and_nothing_more(mine, theirs, open_page, server):
    server.api("PATCH", api_path(mine), {"visibility": "private"})
    expect(theirs.get_by_role("alert")).to_have_text(GONE)
    expect(theirs.locator(".turn")).to_have_count(0)
    expect(box(theirs)).to_have_count(0)
    expect(theirs.get_by_role("link", name="Back to chats")).to_be_visible()
    expect(theirs.get_by_role("button", name="Remember now")).to_have_count(0)
    expect(mine.get_by_text("private", exact=True)).to_be_visible()
    expect(mine.locator(".turn")).to_have_count(2)
    assert "404" in open_page.complaints.pop()


def test_words_that_can_no_longer_be_sent_can_still_be_copied(mine, theirs, open_page, server):
    box(theirs).fill("A long thought")
    server.api("DELETE", api_path(mine))
    expect(theirs.get_by_role("alert")).to_have_text(GONE)
    expect(box(theirs)).to_have_value("A long thought")
    expect(box(theirs)).not_to_be_editable()
    expect(theirs.get_by_role("button", name="Send")).to_be_disabled()
    expect(mine.get_by_role("alert")).to_have_text(GONE)
    assert all("404" in open_page.complaints.pop() for _ in range(2))


def test_a_chat_is_kept_from_the_list_beside_it(chat, page):
    page.evaluate("window.here = true")
    beside = page.locator(".chats .chat-line")

    def more():
        beside.first.hover()
        beside.first.get_by_role("link", name="More actions for").click()
        sheet = page.locator("[data-chat-menu]")
        expect(sheet).to_be_visible()
        return sheet

    more().get_by_role("button", name="Pin").click()
    expect(page.locator(".chats h2").first).to_have_text("Pinned")
    more().get_by_label("Title").fill("Tides at Husum")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tides at Husum")).to_be_visible()
    expect(beside.first).to_contain_text("Tides at Husum")
    more()
    page.keyboard.press("Escape")
    expect(page.locator("[data-chat-menu]")).to_be_hidden()
    expect(beside.first.get_by_role("link", name="More actions for")).to_be_focused()
    assert page.evaluate("window.here")

    more().get_by_role("button", name="Delete").click()
    expect(page.get_by_text("was deleted. You can undo this for ten minutes.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Tides at Husum")).to_be_visible()


def test_a_chat_is_archived_from_the_list_of_all(chat, page):
    page.get_by_role("link", name="New chat").click()
    row = page.locator(".rows > li", has_text="When is the cutover?")
    row.hover()
    row.get_by_role("link", name="More actions for").click()
    page.get_by_role("button", name="Archive").click()
    expect(row).to_have_count(0)
    page.get_by_role("link", name="Archived chats").click()
    expect(page.locator(".rows > li")).to_contain_text("When is the cutover?")
