"""The picture of what a project remembers, and the way from a claim to what it was made of."""

import re

import pytest
from playwright.sync_api import Page, expect

WIDE = {"width": 1400, "height": 900}


@pytest.fixture
def wide(open_page, sign_in, demo) -> Page:
    page = open_page(viewport=WIDE)
    sign_in(page)
    return page


def test_a_block_opens_its_children_down_to_the_message_and_back(wide, demo):
    wide.goto(f"/projects/{demo}/memory/")
    wide.locator(".block.week").first.click()
    drawer = wide.locator("[data-drawer]")
    expect(drawer.locator(".drawer-head")).to_contain_text("Week")
    drawer.locator(".memory-item.c-conversation a").first.click()
    expect(drawer.get_by_text("Merged into Week")).to_be_visible()
    expect(drawer.locator(".memory-item.c-message").first).to_be_visible()
    drawer.locator(".memory-item.c-message a").first.click()
    expect(wide.locator(".turn:target")).to_be_visible()
    wide.go_back()
    expect(wide.locator(".block.week").first).to_be_visible()


def test_the_slider_shows_another_day(wide, demo):
    wide.goto(f"/projects/{demo}/memory/")
    picture = wide.locator("[data-picture]")
    expect(picture.locator(".block.week")).not_to_have_count(0)
    slider = wide.get_by_label("Days since the first memory")
    today = wide.get_by_label("As of").input_value()
    slider.focus()
    slider.press("Home")
    expect(picture).to_contain_text("forgotten later are not counted")
    expect(picture.locator(".block.week")).to_have_count(0)
    expect(picture.locator(".block")).to_have_count(1)
    width = picture.locator(".block rect").get_attribute("width")
    assert int(width) > 0
    assert wide.locator("[data-marker]").get_attribute("x1") == "0%"
    # The day stands in the address: it can be passed on.
    address = wide.url
    assert "at=" in address
    slider.press("End")
    # "used.", or "used on" that day if midnight has passed since the page was opened.
    expect(picture).to_contain_text(re.compile(r"used(\.| on) "))
    expect(picture.locator(".block.week")).not_to_have_count(0)
    assert today in wide.url
    wide.goto(address)
    expect(picture.locator(".block")).to_have_count(1)


def test_the_play_button_moves_through_the_days(wide, demo):
    wide.goto(f"/projects/{demo}/memory/")
    day, readout = wide.get_by_label("As of"), wide.locator("[data-readout]")
    today, tokens = day.input_value(), readout.text_content()
    wide.get_by_role("button", name="Play").click()
    expect(day).not_to_have_value(today)
    expect(readout).not_to_have_text(tokens)
    wide.get_by_role("button", name="Pause").click()
    # The list follows when it stops.
    expect(wide.locator("[data-picture]")).to_contain_text("forgotten later are not counted")
    assert day.input_value() in wide.url
    wide.get_by_role("button", name="Play").click()
    expect(day).to_have_value(today, timeout=15_000)
    sent = re.compile(r"used(\.| on) ")
    expect(wide.locator("[data-picture]")).to_contain_text(sent)
    expect(wide.locator("[data-picture] .block.week")).not_to_have_count(0)
    expect(wide.get_by_role("button", name="Play")).to_be_visible()


def test_the_receipt_of_a_reply_leads_to_its_source(wide, demo, server, say, open_page):
    wide.goto(f"/projects/{demo}/")
    server.model.say("Four on deck 2.")
    say(wide, "How many wheelchair places has the MS Aurelia?")
    expect(wide.locator(".turn").nth(1)).to_contain_text("Four on deck 2.")
    expect(wide.locator("[aria-busy]")).to_have_count(0)
    chat = wide.url
    wide.locator(".turn").nth(1).locator("a.sources-link").click()
    drawer = wide.locator("[data-drawer]")
    expect(drawer.get_by_role("heading", name="Context")).to_be_visible()
    likely = drawer.get_by_role("region", name="Likely used")
    expect(likely.locator(".memory-item").first).to_contain_text("wheelchair")
    drawer.get_by_text("Everything in the prompt").click()
    folded = drawer.locator(".all-sources .memory-item")
    wheelchair = folded.and_(drawer.locator(".c-conversation")).filter(
        has_text="four wheelchair places"
    )
    wheelchair.first.get_by_role("link", name="Passengers with a wheelchair").click()
    wide.locator(".turn", has_text="four wheelchair places").get_by_role("link").click()
    expect(wide.locator(".turn:target")).to_contain_text("four wheelchair places on deck 2")
    wide.go_back()
    wide.go_back()
    expect(wide).to_have_url(chat)
    # What is wrong with a thing is said beside it.
    wide.locator(".turn").nth(1).locator("a.sources-link").click()
    drawer.get_by_text("Everything in the prompt").click()
    fact = folded.and_(drawer.locator(".c-fact")).first
    fact.get_by_text("Correct", exact=True).click()
    fact.get_by_label("Right version").fill("seven, on deck 3")
    # Without a connection, the text stays.
    wide.route("**/sources/change/*", lambda route: route.abort(), times=1)
    fact.get_by_role("button", name="Save").click()
    expect(fact.get_by_role("alert")).to_have_text("No connection. Your text is still here.")
    expect(fact.get_by_label("Right version")).to_have_value("seven, on deck 3")
    # Also if the server refuses it.
    busy = {"detail": "The database is not available."}
    wide.route("**/sources/change/*", lambda route: route.fulfill(status=503, json=busy), times=1)
    fact.get_by_role("button", name="Save").click()
    expect(fact.get_by_role("alert")).to_have_text(busy["detail"])
    expect(fact.get_by_label("Right version")).to_have_value("seven, on deck 3")
    open_page.complaints.clear()
    changes = []
    wide.on("request", lambda one: changes.append(one.url) if one.method == "POST" else None)
    fact.get_by_role("button", name="Save").dblclick()
    expect(drawer.get_by_role("status")).to_have_text("Corrected.")
    assert len(changes) == 1
    expect(wide).to_have_url(chat)
    expect(folded.filter(has_text="changed since then")).not_to_have_count(0)
    # The fact has the right version now.
    address = folded.filter(has_text="changed since then").first.locator("footer a").first
    wide.goto(address.get_attribute("href"))
    expect(wide.locator("main")).to_contain_text("seven, on deck 3")


def test_an_entry_is_pinned_edited_and_hidden_beside_the_picture(wide, demo):
    wide.goto(f"/projects/{demo}/memory/")
    wide.evaluate("window.here = true")
    block = wide.locator(".block.conversation").last
    pk = block.get_attribute("id")
    block.click()
    drawer = wide.locator("[data-drawer]")

    def ask(name: str) -> None:
        drawer.get_by_role("button", name=name).click()
        expect(drawer.get_by_role("heading", name=name, exact=True)).to_be_visible()

    def do(name: str) -> None:
        ask(name)
        drawer.get_by_role("button", name=name).click()

    do("Pin")
    expect(drawer.get_by_role("button", name="Unpin")).to_be_visible()
    expect(wide.locator(f"#{pk}")).to_contain_text(", pinned")

    drawer.get_by_text("Edit", exact=True).click()
    drawer.get_by_role("textbox").first.fill("- The gauge at Husum is read at seven.")
    drawer.get_by_role("button", name="Preview changes").click()
    expect(drawer.get_by_text("New text")).to_be_visible()
    drawer.get_by_role("button", name="Edit").click()
    expect(drawer.locator(".memory-item").first).to_contain_text("The gauge at Husum")

    ask("Unpin")
    drawer.get_by_role("link", name="Cancel").click()
    expect(drawer.get_by_role("heading", name="Unpin")).to_have_count(0)
    do("Unpin")
    expect(drawer.get_by_role("button", name="Pin")).to_be_visible()
    do("Hide")
    expect(drawer.get_by_role("button", name="Show again")).to_be_visible()
    expect(wide.locator(f"#{pk}")).to_have_count(0)
    assert wide.evaluate("window.here")
