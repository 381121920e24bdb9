"""From the sign-in to a reply that arrives in pieces, in a real browser."""

import re
import threading

from playwright.sync_api import Page, expect

from tests.scripted import Answer

WORDS = "On **Thursday** at nine, when the exports have run and the new primary is warm."
MANY = 100


def last_reply(page: Page):
    return page.locator(".turn:not(.person)").last


def test_a_reply_arrives_in_pieces(page, server, begin, say):
    begin(page)
    server.model.say("Hello.")
    say(page, "Good morning")
    expect(last_reply(page)).to_contain_text("Hello.")
    expect(page.get_by_role("heading", level=1)).to_have_text("Good morning")

    words = server.model.dictate(WORDS)
    say(page, "When is the cutover?")
    expect(page.locator(".turn.person").last).to_contain_text("When is the cutover?")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    # Some words are there while others are still to come.
    words.release(2)
    growing = page.locator(".turn[aria-busy] [data-message-text]")
    expect(growing).to_have_text("On **Thursday**")
    expect(page.get_by_role("status")).to_have_text("The assistant is replying.")
    words.release(MANY)
    # At the end it is the server's rendering.
    expect(last_reply(page).locator("strong")).to_have_text("Thursday")
    expect(last_reply(page)).to_contain_text("warm.")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text("The reply is complete.")
    page.reload()
    expect(page.locator(".turn")).to_have_count(4)


def test_a_reader_who_reloads_picks_the_reply_up(page, server, begin, say):
    begin(page)
    words = server.model.dictate(WORDS)
    say(page, "When?")
    words.release(2)
    growing = page.locator(".turn[aria-busy] [data-message-text]")
    expect(growing).to_have_text("On **Thursday**")
    page.reload()
    words.release(2)
    expect(growing).to_have_text("On **Thursday** at nine,")
    words.release(MANY)
    expect(last_reply(page).locator("strong")).to_have_text("Thursday")
    expect(last_reply(page)).to_contain_text("warm.")


def test_a_long_wait_for_the_first_word_shows_its_seconds(page, server, begin, say):
    begin(page)
    words = server.model.dictate(WORDS)
    page.clock.install()
    say(page, "When?")
    silent = page.locator(".turn[aria-busy] [data-message-text]")
    expect(silent).to_be_visible()
    page.clock.run_for(12_000)
    below = "said => getComputedStyle(said, '::after').content"
    assert re.fullmatch(r'"Thinking… 1\d s"', silent.evaluate(below))
    words.release(2)
    expect(silent).to_have_text("On **Thursday**")
    assert silent.evaluate(below) == "none"
    words.release(MANY)
    expect(page.locator("[aria-busy]")).to_have_count(0)


def test_reasoning_is_folded_and_goes_with_a_reload(page, server, begin, say):
    begin(page)
    words = threading.Semaphore(0)
    server.model.queue(Answer(WORDS, thoughts=("They ask for ", "a day."), permits=words))
    say(page, "When?")
    thinking = page.locator("details.thinking")
    expect(thinking).to_be_visible()
    expect(thinking.get_by_text("They ask for a day.")).to_be_hidden()
    thinking.locator("summary").click()
    expect(thinking.get_by_text("They ask for a day.")).to_be_visible()
    words.release(MANY)
    expect(last_reply(page).locator("strong")).to_have_text("Thursday")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(last_reply(page).get_by_text("They ask for a day.")).to_be_visible()
    page.reload()
    expect(last_reply(page).locator("strong")).to_have_text("Thursday")
    expect(thinking).to_have_count(0)


def test_a_failed_reply_says_why_and_is_retried(page, server, begin, say):
    begin(page)
    server.model.say("Hello.")
    say(page, "Good morning")
    expect(last_reply(page)).to_contain_text("Hello.")
    server.model.status(401)
    say(page, "When?")
    expect(page.locator(".failure")).to_contain_text("rejected the API key")
    server.model.say("Thursday.")
    page.get_by_role("button", name="Try again").click()
    expect(last_reply(page)).to_contain_text("Thursday.")
    expect(page.locator(".failure")).to_have_count(0)
    expect(page.locator(".turn")).to_have_count(4)


def test_shift_enter_begins_a_new_line_and_composing_sends_nothing(page, begin):
    begin(page)
    box = page.get_by_label("Message", exact=True)
    box.fill("one")
    box.press("Shift+Enter")
    box.type("two")
    composing = {"key": "Enter", "isComposing": True, "bubbles": True, "cancelable": True}
    box.dispatch_event("keydown", composing)
    expect(box).to_have_value("one\ntwo")
    expect(page.get_by_role("heading", name="New chat")).to_be_visible()


def test_the_prompt_opens_beside_the_chat(page, begin, say):
    begin(page)
    say(page, "Good morning")
    expect(last_reply(page)).to_contain_text("Scripted.")
    page.get_by_role("link", name="Context").click()
    drawer = page.get_by_role("complementary", name="Context")
    expect(drawer).to_contain_text("This chat so far")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()


def test_memory_and_settings_can_be_reached(page, begin):
    name = begin(page)
    page.get_by_role("link", name="Memory").click()
    expect(page.get_by_role("heading", name=f"What {name} remembers")).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    shared = page.get_by_text("can see what the project remembers")
    expect(shared).to_be_hidden()
    page.get_by_role("link", name="Members").click()
    expect(shared).to_be_visible()
    expect(page.get_by_role("link", name="Members")).to_have_attribute("aria-current", "true")
    expect(page.get_by_label("Instructions")).to_be_hidden()


def test_without_scripts_on_a_small_screen_everything_still_works(
    open_page, sign_in, server, begin, say
):
    page = open_page(java_script_enabled=False, viewport={"width": 390, "height": 800})
    sign_in(page)
    begin(page)
    server.model.say(WORDS, delay=0.1)
    page.get_by_label("Message", exact=True).fill("When?")
    page.get_by_role("button", name="Send").click()
    expect(last_reply(page).locator("strong")).to_have_text("Thursday")
    expect(page.get_by_role("link", name="Memory")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Memory").click()
    expect(page.get_by_role("heading", name="remembers")).to_be_visible()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Retention").click()
    expect(page.get_by_label("Name", exact=True)).to_be_hidden()
    page.get_by_label("Delete chats after").fill("90")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Delete chats after")).to_have_value("90")
