"""By keyboard alone: going anywhere, beginning a chat, seeing which keys there are."""

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def home(page, demo) -> Page:
    page.goto(f"/projects/{demo}/memory/")
    page.wait_for_load_state()
    return page


def test_a_few_letters_lead_to_a_chat(home):
    home.keyboard.press("Control+k")
    letters = home.get_by_placeholder("Go to…")
    expect(letters).to_be_focused()
    letters.type("vouchers")
    expect(home.locator("[data-palette-result].selected")).to_contain_text("Vouchers")
    home.keyboard.press("Enter")
    expect(home.get_by_role("heading", level=1)).to_have_text("Vouchers")


def test_enter_waits_for_what_the_letters_lead_to(home):
    home.keyboard.press("Control+k")
    expect(home.locator("[data-palette-result].selected")).to_be_visible()
    home.get_by_placeholder("Go to…").fill("vouchers")
    home.keyboard.press("Enter")
    expect(home.get_by_role("heading", level=1)).to_have_text("Vouchers")


def test_escape_closes_the_list_and_stops_no_reply(page, server, begin, say):
    begin(page)
    words = server.model.dictate("At nine, sharp.")
    say(page, "When?")
    words.release()
    expect(page.locator("[aria-busy] [data-message-text]")).to_have_text("At")
    page.keyboard.press("Control+k")
    expect(page.get_by_placeholder("Go to…")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_placeholder("Go to…")).to_be_hidden()
    words.release(10)
    expect(page.locator(".turn").nth(1)).to_contain_text("At nine, sharp.")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.get_by_text("Stopped.")).to_have_count(0)


def test_escape_closes_the_list_at_once_although_letters_are_typed(home):
    home.keyboard.press("Control+k")
    home.get_by_placeholder("Go to…").type("wheelchair")
    expect(home.locator("[data-palette-result] mark").first).to_be_visible()
    home.keyboard.press("Escape")
    expect(home.get_by_placeholder("Go to…")).to_be_hidden()


def test_arrows_choose_and_escape_closes(home):
    home.keyboard.press("Control+k")
    places = home.locator("[data-palette-result]")
    expect(places.nth(0)).to_have_class("selected")
    home.keyboard.press("ArrowDown")
    expect(places.nth(1)).to_have_class("selected")
    home.keyboard.press("ArrowUp")
    home.keyboard.press("ArrowUp")
    expect(places.last).to_have_class("selected")
    home.keyboard.press("Escape")
    expect(home.get_by_placeholder("Go to…")).to_be_hidden()


def test_the_field_refers_to_the_selected_result(home):
    home.keyboard.press("Control+k")
    letters = home.get_by_role("combobox", name="Search for a page, chat, memory or fact")
    expect(letters).to_have_attribute("aria-activedescendant", "palette-result-0")
    home.keyboard.press("ArrowDown")
    expect(letters).to_have_attribute("aria-activedescendant", "palette-result-1")
    selected = home.get_by_role("listbox").get_by_role("option", selected=True)
    expect(selected).to_have_attribute("id", "palette-result-1")
    letters.fill("vouchers")
    expect(selected).to_contain_text("Vouchers")
    expect(letters).to_have_attribute("aria-activedescendant", "palette-result-0")


def test_a_chat_is_begun_and_the_keys_are_shown(home):
    home.keyboard.press("?")
    expect(home.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    home.keyboard.press("Escape")
    home.keyboard.press("Control+Shift+o")
    expect(home.get_by_role("heading", name="New chat")).to_be_visible()
    # A question mark that is written is no key.
    home.get_by_label("Message", exact=True).press("?")
    expect(home.get_by_role("heading", name="Keyboard shortcuts")).to_be_hidden()
    expect(home.get_by_label("Message", exact=True)).to_have_value("?")
