"""Without a connection, and after signing out elsewhere, the page says so and keeps its text."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.chat.pictures import picture
from tests.e2e.test_images import upload

OFFLINE = "No connection. Try again."
TEXT_STAYS = "No connection. Your text is still here."


@pytest.fixture
def offline(chat, open_page) -> Iterator[Page]:
    """A chat whose browser has lost its connection, with an image that is not sent."""
    chat.locator("[data-picker] input").set_input_files(upload(picture()))
    expect(chat.locator(".picture img")).to_be_visible()
    chat.context.set_offline(True)
    yield chat
    expect(chat.locator(".picture img")).to_be_visible()
    open_page.complaints[:] = [
        text
        for text in open_page.complaints
        if "ERR_INTERNET_DISCONNECTED" not in text and "400 (Bad Request)" not in text
    ]


def test_links_of_a_chat_say_why_they_do_nothing(offline):
    notice = offline.locator("[data-offline]", has_text=OFFLINE)
    turn = offline.locator(".turn").first
    for link in (
        offline.get_by_role("link", name="Context"),
        turn.get_by_role("link", name="Edit"),
        offline.locator("[data-chat-menu-link]").first,
    ):
        link.click()
        expect(notice).to_be_visible()
        offline.evaluate("window.dispatchEvent(new Event('online'))")
        expect(notice).to_be_hidden()
    offline.get_by_role("button", name="Remember now").click()
    expect(offline.locator("[data-error]")).to_have_text(OFFLINE)


def test_another_name_stays_in_its_field(offline):
    offline.get_by_role("button", name="Rename chat").click()
    title = offline.get_by_role("textbox", name="Rename chat")
    title.fill("Cutover")
    title.press("Enter")
    expect(offline.locator("[data-offline]", has_text=OFFLINE)).to_be_visible()
    expect(title).to_be_focused()
    expect(title).to_have_value("Cutover")
    offline.context.set_offline(False)
    title.press("Enter")
    expect(offline.get_by_role("heading", level=1)).to_have_text("Cutover")


def test_settings_of_a_chat_are_saved_beside_an_image(offline):
    offline.get_by_role("button", name="Chat settings").click()
    settings = offline.locator("#chat-settings")
    title = settings.get_by_label("Title")
    title.evaluate("(title) => title.removeAttribute('maxlength')")
    title.fill("Cutover" * 40)
    save = settings.get_by_role("button", name="Save")
    save.click()
    expect(settings.get_by_role("alert")).to_have_text(TEXT_STAYS)
    offline.context.set_offline(False)
    save.click()
    expect(settings.locator(".invalid")).to_be_visible()
    expect(title).to_be_focused()
    title.fill("Cutover")
    save.click()
    expect(settings).to_be_hidden()
    expect(offline.get_by_role("heading", level=1)).to_have_text("Cutover")
    expect(settings.locator(".invalid, .error")).to_have_count(0)


def test_settings_of_a_chat_and_its_name_stay_when_the_server_refuses_them(offline, open_page):
    offline.context.set_offline(False)
    refusal = {"status": 503, "json": {"detail": "Not available right now."}}
    forms = re.compile("/(edit|keep)/$")
    offline.route(forms, lambda route: route.fulfill(**refusal))
    offline.get_by_role("button", name="Chat settings").click()
    settings = offline.locator("#chat-settings")
    settings.get_by_label("Title").fill("Cutover")
    settings.get_by_role("button", name="Save").click()
    expect(settings.get_by_role("alert")).to_have_text("Not available right now.")
    expect(settings.get_by_label("Title")).to_have_value("Cutover")
    offline.keyboard.press("Escape")
    offline.get_by_role("button", name="Rename chat").click()
    title = offline.get_by_role("textbox", name="Rename chat")
    title.fill("Cutover")
    title.press("Enter")
    expect(offline.locator("[data-rename-form]").get_by_role("alert")).to_be_visible()
    expect(title).to_have_value("Cutover")
    offline.unroute(forms)
    title.press("Enter")
    expect(offline.get_by_role("heading", level=1)).to_have_text("Cutover")
    open_page.complaints[:] = [text for text in open_page.complaints if "503" not in text]


def test_settings_of_a_chat_stay_when_the_session_has_ended(offline):
    offline.context.set_offline(False)
    offline.get_by_role("button", name="Chat settings").click()
    settings = offline.locator("#chat-settings")
    settings.get_by_label("Title").fill("Cutover")
    cookies = offline.context.cookies()
    offline.context.clear_cookies(name=re.compile("sessionid"))
    settings.get_by_role("button", name="Save").click()
    expect(settings.get_by_role("alert")).to_contain_text("Sign in again in another tab")
    expect(settings.get_by_label("Title")).to_have_value("Cutover")
    offline.context.add_cookies(cookies)
    settings.get_by_role("button", name="Save").click()
    expect(settings).to_be_hidden()
    expect(offline.get_by_role("heading", level=1)).to_have_text("Cutover")


def test_a_name_stays_when_the_session_has_ended(offline):
    offline.context.set_offline(False)
    cookies = offline.context.cookies()
    offline.get_by_role("button", name="Rename chat").click()
    form = offline.locator("[data-rename-form]")
    form.get_by_role("textbox").fill("Cutover")
    offline.context.clear_cookies(name=re.compile("sessionid"))
    form.get_by_role("textbox").press("Enter")
    expect(form.get_by_role("alert")).to_contain_text("Sign in again in another tab")
    expect(form.get_by_role("textbox")).to_have_value("Cutover")
    offline.context.add_cookies(cookies)
    form.get_by_role("textbox").press("Enter")
    expect(offline.get_by_role("heading", level=1)).to_have_text("Cutover")

    offline.locator(".chats .chat-line").first.hover()
    offline.locator("[data-chat-menu-link]").first.click()
    menu = offline.locator("[data-chat-menu]")
    menu.get_by_label("Title").fill("Tides")
    offline.context.clear_cookies(name=re.compile("sessionid"))
    menu.get_by_role("button", name="Save").click()
    expect(menu.get_by_role("alert")).to_contain_text("Sign in again in another tab")
    expect(menu.get_by_label("Title")).to_have_value("Tides")
    offline.context.add_cookies(cookies)
    menu.get_by_role("button", name="Save").click()
    expect(menu).to_be_hidden()
    expect(offline.get_by_role("heading", level=1)).to_have_text("Tides")


def test_an_image_that_is_added_after_the_session_ended_says_so(offline):
    offline.context.set_offline(False)
    offline.context.clear_cookies(name=re.compile("sessionid"))
    offline.locator("[data-picker] input").set_input_files(upload(picture()))
    expect(offline.locator(".picture.refused")).to_contain_text("Sign in again in another tab")


def test_the_list_of_pages_stays_open(offline):
    offline.keyboard.press("Control+k")
    palette = offline.get_by_role("dialog", name="Go to")
    offline.keyboard.type("memo")
    expect(palette.get_by_text(OFFLINE)).to_be_visible()
    expect(palette.get_by_role("combobox")).to_have_value("memo")
    offline.context.set_offline(False)
    offline.keyboard.type("ry")
    expect(palette.get_by_role("option", name="Memory").first).to_be_visible()


def test_a_form_of_the_drawer_stays_when_the_session_has_ended(offline):
    offline.context.set_offline(False)
    offline.set_viewport_size({"width": 1440, "height": 900})
    offline.locator("#chat-model-link").click()
    drawer = offline.locator("[data-drawer]")
    drawer.get_by_label("Temperature").fill("0.5")
    cookies = offline.context.cookies()
    offline.context.clear_cookies(name=re.compile("sessionid"))
    save = drawer.get_by_role("button", name="Save")
    save.click()
    expect(drawer.get_by_role("alert")).to_contain_text("Sign in again in another tab")
    expect(drawer.get_by_label("Temperature")).to_have_value("0.5")
    offline.context.add_cookies(cookies)
    save.click()
    expect(drawer.get_by_role("status")).to_have_text("Saved.")
