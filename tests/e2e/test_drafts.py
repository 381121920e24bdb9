"""What somebody has written and not sent stays in the browser, for that user and that chat."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import created, talked
from tests.server import PASSWORD

DRAFT = "Ask Nora about the\ninvoice of May"
STORED = "() => Object.keys(localStorage).filter((key) => key.startsWith('strata-draft/'))"


def box(page: Page) -> Locator:
    """The message box, once the scripts of its page have run."""
    page.wait_for_load_state()
    return page.get_by_label("Message", exact=True)


def test_a_draft_survives_leaving_back_and_a_reload(chat, server):
    box(chat).fill(DRAFT)
    chat.reload()
    expect(box(chat)).to_have_value(DRAFT)
    chat.goto("/account/")
    chat.go_back()
    expect(box(chat)).to_have_value(DRAFT)
    # Another chat has its own.
    path = chat.url
    chat.goto(talked(server, created(server), "Who?", "Ben."))
    expect(box(chat)).to_have_value("")
    chat.goto(path)
    expect(box(chat)).to_have_value(DRAFT)


def test_a_sent_draft_is_removed(chat, server):
    box(chat).fill(DRAFT)
    assert len(chat.evaluate(STORED)) == 1
    box(chat).press("Enter")
    expect(chat.locator(".turn").nth(3)).to_contain_text("Scripted.")
    assert chat.evaluate(STORED) == []
    chat.reload()
    expect(box(chat)).to_have_value("")


def test_the_draft_of_a_new_chat_is_removed_when_its_page_opens(page, begin):
    begin(page)
    box(page).fill(DRAFT)
    page.reload()
    expect(box(page)).to_have_value(DRAFT)
    project = page.url
    box(page).press("Enter")
    expect(page.locator(".turn").nth(1)).to_contain_text("Scripted.")
    assert page.evaluate(STORED) == []
    page.goto(project)
    expect(box(page)).to_have_value("")


def test_a_draft_survives_a_session_that_expired_and_ends_with_signing_out(open_page, begin):
    # Not the browser session that other tests share, since it ends here.
    page = open_page()
    _sign_in(page)
    begin(page)
    box(page).fill(DRAFT)
    page.context.clear_cookies(name=re.compile("sessionid"))
    # Sent without a session, the new chat is not created.
    box(page).press("Enter")
    _fill_sign_in(page)
    expect(box(page)).to_have_value(DRAFT)
    page.locator("button.account").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Username").wait_for()
    assert page.evaluate(STORED) == []


def test_a_text_is_sent_after_signing_in_again_in_another_tab(open_page, begin, server, say):
    page = open_page()
    _sign_in(page)
    begin(page)
    server.model.say("Hello.")
    say(page, "Good morning")
    expect(page.locator(".turn").last).to_contain_text("Hello.")
    page.context.clear_cookies(name=re.compile("sessionid"))
    say(page, DRAFT)
    expect(page.locator("[data-error]")).to_contain_text("Sign in again in another tab")
    other = page.context.new_page()
    _sign_in_at(other, page.url)
    server.model.say("At nine.")
    box(page).press("Enter")
    expect(page.locator(".turn").last).to_contain_text("At nine.")
    expect(box(page)).to_have_value("")


def _sign_in(page: Page) -> None:
    _sign_in_at(page, "/")


def _sign_in_at(page: Page, path: str) -> None:
    page.goto(path)
    _fill_sign_in(page)
    page.locator("button.account").wait_for()


def _fill_sign_in(page: Page) -> None:
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
