"""Stop, regenerate, edit, branch and delete a message in the browser."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

LONG = " ".join(f"word{number}" for number in range(200))


def turn(page: Page, number: int) -> Locator:
    """The turn, with the mouse over it."""
    element = page.locator(".turn").nth(number)
    element.hover()
    return element


def regenerated(page: Page, server, text: str) -> None:
    server.model.say(text)
    turn(page, 1).get_by_role("button", name="Regenerate").click()
    expect(page.locator(".turn").nth(1)).to_contain_text(text)
    expect(page.locator("[aria-busy]")).to_have_count(0)


@pytest.mark.parametrize("by", ["button", "Escape"])
def test_a_stopped_reply_keeps_its_text(chat, server, say, by):
    server.model.say(LONG, delay=0.05)
    say(chat, "Count")
    expect(chat.locator("[aria-busy] [data-message-text]")).to_contain_text("word3")
    if by == "button":
        chat.get_by_role("button", name="Stop").click()
    else:
        chat.keyboard.press("Escape")
    expect(chat.locator(".turn").last).to_contain_text("Stopped.")
    expect(chat.locator("[aria-busy]")).to_have_count(0)
    shown_text = chat.locator(".turn").last.locator("[data-message-text]").inner_text()
    assert shown_text.startswith("word0 word1")
    assert "word199" not in shown_text
    chat.reload()
    expect(chat.locator(".turn").last.locator("[data-message-text]")).to_have_text(shown_text)


def test_a_page_fetched_before_a_reply_ended_does_not_open_it_again(chat, server, say):
    held_routes = []

    def hold_the_first(route):
        response = route.fetch()
        if not held_routes and "aria-busy" in response.text():
            held_routes.append((route, response))
        else:
            route.fulfill(response=response)

    chat.route("**/*part=turns*", hold_the_first)
    server.model.say(LONG, delay=0.1)
    say(chat, "Count")
    while not held_routes:
        chat.wait_for_timeout(50)
    chat.get_by_role("button", name="Stop").click()
    expect(chat.locator(".turn").last).to_contain_text("Stopped.")
    chat.evaluate(
        """() => new MutationObserver(() => {
            if (document.querySelector("[aria-busy]")) document.body.dataset.opened = "again";
        }).observe(document.querySelector("[data-turns]"), { childList: true })"""
    )
    [(route, response)] = held_routes
    with chat.expect_request_finished(lambda request: "part=turns" in request.url):
        route.fulfill(response=response)
    expect(chat.locator("[data-turns]")).to_be_visible()
    chat.wait_for_timeout(300)
    assert chat.evaluate("document.body.dataset.opened") is None


def test_a_reply_is_regenerated_and_its_versions_are_switched(chat, server, say):
    regenerated(chat, server, "On Tuesday.")
    expect(chat.locator(".turn")).to_have_count(2)
    expect(chat.locator(".versions")).to_have_text(re.compile(r"2/2"))
    server.model.say("At nine.")
    say(chat, "At what time?")
    expect(chat.locator(".turn").last).to_contain_text("At nine.")

    chat.get_by_role("button", name="Previous version").click()
    expect(chat.locator(".turn").nth(1)).to_contain_text("On Monday.")
    expect(chat.locator(".versions")).to_have_text(re.compile(r"1/2"))
    expect(chat.locator(".turn")).to_have_count(2)
    # The branch that was continued is there again, whole.
    chat.get_by_role("button", name="Next version").click()
    expect(chat.locator(".turn").nth(1)).to_contain_text("On Tuesday.")
    expect(chat.locator(".turn")).to_have_count(4)
    expect(chat.get_by_role("button", name="Previous version")).to_be_focused()


def test_a_reply_that_was_cut_off_is_continued(chat, server, say):
    server.model.say("On Tues", finish="length")
    say(chat, "On which day?")
    more = chat.get_by_role("button", name="Continue")
    server.model.say("day at nine.")
    more.click()
    expect(chat.locator(".turn").nth(4)).to_contain_text("Continue")
    expect(chat.locator(".turn").nth(5)).to_contain_text("day at nine.")
    expect(more).to_be_hidden()


def test_a_message_is_edited_and_its_earlier_text_is_kept(chat):
    turn(chat, 0).get_by_role("link", name="Edit").click()
    box = chat.get_by_label("Your text")
    expect(box).to_be_focused()
    expect(box).to_have_value("When is the cutover?")
    box.fill("When is the migration?")
    box.press("Control+Enter")
    expect(chat.locator(".turn").nth(0).locator("[data-message-text]")).to_have_text(
        "When is the migration?"
    )
    expect(chat.locator(".turn")).to_have_count(2)
    chat.get_by_role("link", name="edited").click()
    expect(chat.get_by_role("region", name="Earlier versions")).to_contain_text("cutover?")
    chat.get_by_role("link", name="Close").click()
    expect(chat.get_by_role("region", name="Earlier versions")).to_have_count(0)


def test_an_edit_is_given_up(chat):
    turn(chat, 0).get_by_role("link", name="Edit").click()
    chat.get_by_label("Your text").press("Escape")
    expect(chat.get_by_label("Your text")).to_have_count(0)
    turn(chat, 0).get_by_role("link", name="Edit").click()
    chat.get_by_label("Your text").fill("Something else")
    # What was written is not lost by a slip of the finger.
    chat.get_by_label("Your text").press("Escape")
    expect(chat.get_by_label("Your text")).to_have_value("Something else")
    chat.get_by_role("link", name="Cancel").click()
    expect(chat.locator(".turn").nth(0)).to_contain_text("When is the cutover?")


def test_a_message_is_asked_again_beside_the_first(chat, server):
    turn(chat, 0).get_by_role("link", name="Edit").click()
    chat.get_by_label("Your text").fill("When is the dress rehearsal?")
    server.model.say("On Friday.")
    chat.get_by_role("button", name="Send again").click()
    expect(chat.locator(".turn").nth(1)).to_contain_text("On Friday.")
    expect(chat.locator(".turn")).to_have_count(2)
    expect(chat.locator(".turn").nth(0).locator(".versions")).to_have_text(re.compile("2/2"))
    chat.get_by_role("button", name="Previous version").click()
    expect(chat.locator(".turn").nth(0)).to_contain_text("When is the cutover?")
    expect(chat.locator(".turn").nth(1)).to_contain_text("On Monday.")


def test_a_chat_is_forked_at_a_message(chat, server, say):
    server.model.say("At nine.")
    say(chat, "At what time?")
    expect(chat.locator(".turn").last).to_contain_text("At nine.")
    before = chat.url
    turn(chat, 1).get_by_label("More").click()
    chat.get_by_role("button", name="Fork from here").click()
    chat.wait_for_url(lambda url: url.partition("#")[0] != before.partition("#")[0])
    expect(chat.locator(".turn")).to_have_count(2)
    expect(chat.locator(".turn").last).to_contain_text("On Monday.")


def test_a_message_is_deleted_once_that_is_confirmed(chat):
    turn(chat, 1).get_by_label("More").click()
    chat.get_by_role("link", name="Delete", exact=True).click()
    chat.get_by_role("link", name="Cancel").click()
    expect(chat.locator(".turn").nth(1)).to_contain_text("On Monday.")
    turn(chat, 1).get_by_label("More").click()
    chat.get_by_role("link", name="Delete", exact=True).click()
    chat.get_by_role("button", name="Delete message").click()
    expect(chat.locator(".turn").nth(1)).to_contain_text("Deleted")
    chat.reload()
    expect(chat.locator(".turn").nth(1)).not_to_contain_text("On Monday.")


def test_a_reaction_is_given_and_taken_back(chat):
    turn(chat, 1).get_by_label("React").click()
    chat.get_by_role("button", name="👍").click()
    mine = chat.locator(".turn").nth(1).locator(".chip[aria-pressed=true]")
    expect(mine).to_have_text(re.compile(r"👍\s*1"))
    mine.click()
    expect(chat.locator(".turn .chip")).to_have_count(0)


def test_without_scripts_all_of_it_works(open_page, sign_in, server, begin):
    page = open_page(java_script_enabled=False)
    sign_in(page)
    begin(page)
    server.model.say("On Monday.")
    page.get_by_label("Message", exact=True).fill("When?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".turn").nth(1)).to_contain_text("On Monday.")

    server.model.say("On Tuesday.")
    turn(page, 1).get_by_role("button", name="Regenerate").click()
    expect(page.locator(".turn").nth(1)).to_contain_text("On Tuesday.")
    page.get_by_role("button", name="Previous version").click()
    expect(page.locator(".turn").nth(1)).to_contain_text("On Monday.")

    turn(page, 0).get_by_role("link", name="Edit").click()
    page.get_by_label("Your text").fill("When, please?")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".turn").nth(0)).to_contain_text("When, please?")
    page.get_by_role("link", name="edited").click()
    expect(page.get_by_role("region", name="Earlier versions")).to_contain_text("When?")
    page.get_by_role("link", name="Back").click()

    turn(page, 1).get_by_label("React").click()
    page.get_by_role("button", name="👍").click()
    expect(page.locator(".chip[aria-pressed=true]")).to_contain_text("1")
    turn(page, 1).get_by_label("More").click()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete message").click()
    expect(page.locator(".turn").nth(1)).to_contain_text("Deleted")
