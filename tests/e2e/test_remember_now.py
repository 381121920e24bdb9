"""Remember now: the summary of a chat appears on its page, without a reload."""

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import created, talked

MESSAGE = "The cutover of billing is on 3 March, and Ana owns it."


@pytest.fixture
def broker(server) -> None:
    """The tables of the broker, without a worker."""
    code = (
        "from config.postgres.server import install_broker; from django.conf import settings;"
        " install_broker(settings.CELERY_BROKER_URL)"
    )
    server.manage("shell", "-c", code)


@pytest.fixture
def open_chat(server, sign_in, broker):
    def enter(page):
        sign_in(page)
        page.goto(talked(server, created(server), MESSAGE, "Noted."))
        expect(page.locator(".turn").nth(1)).to_contain_text("Noted.")
        return page

    return enter


def cycle(server, page) -> None:
    """Does what a worker would."""
    session = page.url.split("/chats/")[1].split("/")[0]
    code = f"from memory.tasks import summarise_session; summarise_session('{session}', force=True)"
    server.manage("shell", "-c", code)


def test_the_summary_appears_and_a_second_click_does_nothing(open_page, open_chat, server):
    page = open_chat(open_page())
    page.evaluate("window.stays = true")
    posts: list[str] = []
    page.on("request", lambda request: request.method == "POST" and posts.append(request.url))
    button = page.get_by_role("button", name="Remember now")
    button.click()
    # A request waits two seconds for the summary.
    expect(button).to_have_attribute("aria-busy", "true")
    for _ in range(2):
        # Playwright would wait until the button is enabled.
        button.click(force=True)
    box = page.locator("[data-remembered]")
    expect(box).to_contain_text("Writing the summary…")
    cycle(server, page)
    expect(box).to_contain_text("Ana owns it")
    expect(button).not_to_have_attribute("aria-busy", "true")
    assert len(posts) == 1
    assert page.evaluate("window.stays")
    button.click()
    expect(box).to_contain_text("There is nothing new to summarise.")


def test_without_javascript_a_page_shows_the_summary(open_page, open_chat, server):
    page = open_chat(open_page(java_script_enabled=False))
    page.get_by_role("button", name="Remember now").click()
    expect(page.locator("main")).to_contain_text("Writing the summary…")
    cycle(server, page)
    # The page loads itself again.
    expect(page.locator("main")).to_contain_text("Ana owns it")
    page.get_by_role("link", name="Back to chat").click()
    expect(page.locator(".turn").nth(1)).to_contain_text("Noted.")


def test_the_summary_stays_when_the_reply_ends_and_goes_with_the_next(open_page, open_chat, server):
    page = open_chat(open_page())
    box, message = page.locator("[data-remembered]"), page.get_by_label("Message", exact=True)
    words = server.model.dictate("Thursday then.")
    message.fill("The rehearsal is on Thursday.")
    message.press("Enter")
    expect(page.locator(".turn")).to_have_count(4)
    page.get_by_role("button", name="Remember now").click()
    expect(box).to_contain_text("Writing the summary…")
    words.release()
    words.release()
    expect(page.locator(".turn").nth(3)).to_contain_text("Thursday then.")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    cycle(server, page)
    expect(box).to_contain_text("Ana owns it")
    message.fill("Thank you.")
    message.press("Enter")
    expect(page.locator(".turn")).to_have_count(6)
    expect(box).to_be_empty()
