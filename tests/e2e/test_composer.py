"""The message form reports text that is too long and keeps it."""

from playwright.sync_api import Page, expect

LONGEST = 500_000
REASON = "This message is too long: 500001 characters. The limit is 500000."


def write(page: Page, label: str, text: str) -> None:
    """Puts `text` into a box at once, as pasting it would."""
    page.wait_for_load_state()
    page.get_by_label(label, exact=True).focus()
    page.keyboard.insert_text(text)


def length(page: Page, label: str) -> int:
    # Of a page that still comes in, a box may have the first half of its text.
    page.wait_for_load_state()
    return page.get_by_label(label, exact=True).evaluate("box => box.value.length")


def test_a_message_that_is_too_long_says_so_and_stays_in_the_composer(
    page, open_page, server, begin, say
):
    begin(page)
    write(page, "Message", "x" * (LONGEST + 1))
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text(REASON)
    assert length(page, "Message") == LONGEST + 1

    server.model.say("Hello.")
    say(page, "Good morning")
    expect(page.locator(".turn").nth(1)).to_contain_text("Hello.")
    write(page, "Message", "x" * (LONGEST + 1))
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text(REASON)
    assert length(page, "Message") == LONGEST + 1
    expect(page.locator(".turn")).to_have_count(2)
    # One character less is sent.
    server.model.say("Long.")
    page.get_by_label("Message", exact=True).press("Backspace")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".turn").nth(3)).to_contain_text("Long.")
    assert length(page, "Message") == 0
    # A browser notes each answer of that kind.
    noted = [open_page.complaints.pop() for _ in range(2)]
    assert all("400" in entry for entry in noted)


def test_an_edit_that_is_too_long_says_so_and_stays_in_its_box(page, open_page, server, begin, say):
    begin(page)
    server.model.say("Hello.")
    say(page, "Good morning")
    expect(page.locator(".turn").nth(1)).to_contain_text("Hello.")
    page.locator(".turn").first.hover()
    page.locator(".turn").first.get_by_role("link", name="Edit").click()
    write(page, "Your text", "x" * LONGEST)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("This message is too long")
    assert length(page, "Your text") == LONGEST + len("Good morning")
    assert "400" in open_page.complaints.pop()
