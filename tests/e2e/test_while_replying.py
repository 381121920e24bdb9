"""While a reply is written: Stop in the place of Send, and the way back to the end."""

from playwright.sync_api import expect


def test_stop_takes_the_place_of_send_until_something_is_written(chat, server, say):
    words = server.model.dictate("At nine, sharp.")
    stop = chat.get_by_role("button", name="Stop")
    send = chat.get_by_role("button", name="Send")
    expect(send).to_be_visible()
    expect(stop).to_be_hidden()
    say(chat, "When?")
    words.release()
    expect(chat.locator("[aria-busy] [data-message-text]")).to_have_text("At")
    expect(stop).to_be_visible()
    expect(send).to_be_hidden()
    chat.get_by_label("Message", exact=True).fill("And where?")
    expect(send).to_be_visible()
    stop.click()
    expect(chat.locator(".turn").last).to_contain_text("Stopped.")
    expect(stop).to_be_hidden()
    expect(chat.get_by_label("Message", exact=True)).to_have_value("And where?")


def test_a_button_leads_back_to_the_latest_message(chat, server, say):
    server.model.say("\n\n".join(f"Line {number}" for number in range(80)))
    say(chat, "Count")
    expect(chat.get_by_text("Line 79")).to_be_in_viewport()
    jump = chat.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_hidden()
    chat.locator("[data-scroll]").evaluate("element => { element.scrollTop = 0; }")
    expect(jump).to_be_visible()
    jump.click()
    expect(chat.get_by_text("Line 79")).to_be_in_viewport()
    expect(jump).to_be_hidden()
