"""Images in a real browser: picked, pasted, dropped, refused, removed, sent and seen."""

import base64
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.chat.pictures import SVG, picture


def upload(data: bytes, name: str = "plan.png", kind: str = "image/png") -> dict:
    return {"name": name, "mimeType": kind, "buffer": data}


@pytest.fixture
def begin(server):
    """Creates a project on `page`, and with `words` a chat in it."""

    def create(page: Page, words: str = "") -> None:
        page.goto("/")
        page.get_by_label("Name", exact=True).fill(f"Pictures {uuid4().hex[:6]}")
        page.get_by_role("button", name="Create project").click()
        expect(page.get_by_role("heading", name="New chat")).to_be_visible()
        if words:
            page.get_by_label("Message", exact=True).fill(words)
            page.get_by_role("button", name="Send").click()
            expect(last_reply(page)).to_contain_text("Scripted.")
            # Set by the script that takes what is pasted and dropped.
            page.locator("[data-picker][data-ready]").wait_for()

    return create


def last_reply(page: Page):
    return page.locator(".turn:not(.person)").last


def give(
    page: Page,
    how: str,
    data: bytes,
    name: str = "pasted.png",
    where: str = "[data-composer] textarea",
) -> None:
    """Pastes or drops a file on the composer or at another place, as a browser would."""
    page.evaluate(
        """([how, data, name, where]) => {
            const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
            const given = new DataTransfer();
            given.items.add(new File([bytes], name, { type: "image/png" }));
            const box = document.querySelector(where);
            const options = { bubbles: true, cancelable: true };
            box.dispatchEvent(how === "paste"
                ? new ClipboardEvent("paste", { ...options, clipboardData: given })
                : new DragEvent("drop", { ...options, dataTransfer: given }));
        }""",
        [how, base64.b64encode(data).decode(), name, where],
    )


def is_loaded(page: Page, image) -> bool:
    return image.evaluate("async (one) => { await one.decode(); return one.naturalWidth > 0; }")


def pictures_sent(server) -> int:
    content = server.model.requests[-1]["messages"][-1]["content"]
    return sum(part["type"] == "image_url" for part in content) if type(content) is list else 0


def test_images_are_picked_pasted_and_dropped_and_sent(page, server, begin):
    begin(page, "Hello")
    page.get_by_label("Images").set_input_files([upload(picture()), upload(picture(), "b.png")])
    give(page, "paste", picture("JPEG"))
    give(page, "drop", picture("GIF", mode="P"), "dropped.gif")
    cards = page.locator(".picture")
    expect(cards).to_have_count(4)
    expect(cards.locator("img")).to_have_count(4)
    assert is_loaded(page, cards.locator("img").first)
    cards.nth(1).get_by_role("button", name="Remove").click()
    expect(cards).to_have_count(3)
    cards.first.get_by_label("Description").fill("The old primary")
    server.model.say("A plan.")
    page.get_by_label("Message", exact=True).fill("What is it?")
    page.get_by_role("button", name="Send").click()
    expect(last_reply(page)).to_contain_text("A plan.")
    expect(cards).to_have_count(0)
    assert pictures_sent(server) == 3
    image = page.locator(".turn.person").last.get_by_role("img")
    expect(image).to_have_count(3)
    expect(page.get_by_role("img", name="The old primary")).to_be_visible()
    expect(page.locator(".turn.person").last).to_contain_text("The old primary")
    page.reload()
    expect(image).to_have_count(3)
    assert all(is_loaded(page, item) for item in image.all())
    link = page.locator(".turn.person").last.get_by_role("link").first
    with page.context.expect_page() as opened:
        link.click()
    full = opened.value
    full.wait_for_load_state()
    assert "/images/" in full.url


def test_images_that_are_dropped_beside_the_message_box_are_added(page, begin):
    begin(page, "Hello")
    give(page, "drop", picture(), "dropped.png", where=".turn")
    expect(page.locator(".picture img")).to_have_count(1)


def test_a_message_may_be_nothing_but_an_image(page, server, begin):
    begin(page, "Hello")
    give(page, "paste", picture())
    expect(page.locator(".picture img")).to_have_count(1)
    server.model.say("I see.")
    page.get_by_label("Message", exact=True).press("Enter")
    expect(last_reply(page)).to_contain_text("I see.")
    assert pictures_sent(server) == 1
    expect(page.locator(".turn.person").last.locator(".message-text")).to_have_count(0)


def test_a_refused_image_shows_the_reason_in_its_place(browser, sign_in, server, begin):
    # Not by `open_page`: the browser notes each upload that is refused in its console.
    page = browser.new_page(base_url=server.url)
    sign_in(page)
    begin(page, "Hello")
    give(page, "drop", picture("PNG", size=(900, 900))[:-300], "half.png")
    refused = page.locator(".picture").get_by_role("alert")
    expect(refused).to_have_text("The image is damaged or incomplete. Upload it again.")
    give(page, "drop", SVG, "drawing.png")
    expect(refused.last).to_have_text("SVG images can contain scripts. Upload a PNG instead.")
    for _ in range(2):
        page.get_by_role("button", name="Remove").first.click()
    expect(page.locator("[data-pictures]")).to_be_hidden()
    server.model.say("Still here.")
    page.get_by_label("Message", exact=True).fill("Without it")
    page.get_by_role("button", name="Send").click()
    expect(last_reply(page)).to_contain_text("Still here.")
    assert pictures_sent(server) == 0
    page.close()


def test_a_chat_begins_with_images(page, server, begin):
    begin(page)
    page.locator("[data-picker][data-ready]").wait_for()
    give(page, "paste", picture(), "first.png")
    page.get_by_label("Images").set_input_files([upload(picture(), "second.png")])
    cards = page.locator(".picture")
    expect(cards).to_have_count(2)
    expect(cards.locator("canvas")).to_have_count(2)
    give(page, "drop", picture(), "third.png")
    cards.first.get_by_role("button", name="Remove").click()
    expect(cards).to_have_count(2)
    cards.last.get_by_label("Description").fill("The last")
    server.model.say("Two.")
    page.get_by_label("Message", exact=True).fill("How many?")
    page.get_by_role("button", name="Send").click()
    expect(last_reply(page)).to_contain_text("Two.")
    assert pictures_sent(server) == 2
    expect(page.get_by_role("img", name="second.png")).to_be_visible()
    expect(page.locator(".turn.person")).to_contain_text("The last")


def test_without_scripts_a_file_field_does(open_page, sign_in, server, begin):
    page = open_page(java_script_enabled=False, viewport={"width": 390, "height": 800})
    sign_in(page)
    begin(page)
    page.get_by_label("Images").set_input_files([upload(picture()), upload(picture(), "b.png")])
    page.get_by_label("Message", exact=True).fill("Look")
    server.model.say("Two plans.")
    page.get_by_role("button", name="Send").click()
    expect(last_reply(page)).to_contain_text("Two plans.")
    expect(page.get_by_role("img", name="b.png")).to_be_visible()
    assert pictures_sent(server) == 2
