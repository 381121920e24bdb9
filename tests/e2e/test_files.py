"""Files are dropped into a chat, cited in its answer, and opened at the passage."""

import base64
import os
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.chat.pictures import picture as image
from tests.e2e.conftest import created
from tests.memory.files.samples import pdf
from tests.server import PASSWORD

MANUAL = "The torque of the flange bolts of the pump P-40 is 24 newton metres."
READ = "from memory.files import processing; processing.catch_up(60)"


def picture(page: Page, name: str) -> None:
    """Check that nothing is wider than the window. Keep pictures if STRATA_SCREENSHOTS names a
    folder.
    """
    folder = os.environ.get("STRATA_SCREENSHOTS")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            if folder:
                page.screenshot(path=Path(folder) / f"files-{name}-{scheme}-{width}.png")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def drop(page: Page, selector: str, files: dict[str, bytes]) -> None:
    """Drops files as a desktop does."""
    content = {name: base64.b64encode(data).decode() for name, data in files.items()}
    page.locator(selector).evaluate(
        """(target, files) => {
            const dataTransfer = new DataTransfer();
            for (const [name, data] of Object.entries(files)) {
                const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
                dataTransfer.items.add(new File([bytes], name));
            }
            const options = { dataTransfer, bubbles: true, cancelable: true };
            target.dispatchEvent(new DragEvent("drop", options));
        }""",
        content,
    )


def test_three_files_are_dropped_into_a_chat_and_cited(open_page, server, sign_in, say):
    slug = created(server)["slug"]
    chat = server.api("POST", f"projects/{slug}/sessions/", {"title": "Pumps"})["id"]
    page = open_page()
    sign_in(page)
    page.goto(f"/projects/{slug}/chats/{chat}/")
    files = {
        "manual.pdf": pdf("A title page.", MANUAL),
        "notes.md": b"# Notes\n\nThe pump is blue.\n",
        "empty.txt": b"",
    }
    drop(page, "[data-composer]", files)
    expect(page.get_by_label("Only in this chat")).to_be_checked()
    picture(page, "chat")
    page.get_by_label("For the project").check()
    page.locator("#chat-files").get_by_role("button", name="Add").click()
    expect(page.get_by_text("2 files added.")).to_be_visible()
    expect(page.get_by_text("empty.txt: This file is empty.")).to_be_visible()
    server.manage("shell", "-c", READ)
    server.model.say("It is 24 newton metres [1].")
    say(page, "Which torque do the flange bolts of the pump need?")
    citation = page.get_by_role("link", name="[1]")
    citation.wait_for()
    asked = str(server.model.requests[-1]["messages"])
    assert "[1] manual.pdf, p. 2" in asked
    picture(page, "reply")
    citation.click()
    expect(page.locator("mark")).to_contain_text("24 newton metres")
    see_page_image(page)
    picture(page, "viewer")
    page.goto(f"/projects/{slug}/files/")
    expect(page.get_by_text("used in 1 reply")).to_be_visible()
    picture(page, "list")
    page.get_by_label("Search in files", exact=True).fill("torque")
    page.get_by_label("Search in files", exact=True).press("Enter")
    expect(page.locator(".recall-results")).to_contain_text("24 newton metres")
    read_in_german(open_page(locale="de-DE"), slug, chat, files)


def see_page_image(page: Page) -> None:
    """Wait for the image of the cited page, which takes its place before it is there."""
    image = page.locator("details[open] .page-image")
    size = image.bounding_box()
    assert size is not None
    assert size["height"] > size["width"] > 200
    image.scroll_into_view_if_needed()
    image.evaluate("image => image.decode()")
    assert image.evaluate("image => image.naturalWidth") == 1_000


def read_in_german(page: Page, slug: str, chat: str, files: dict[str, bytes]) -> None:
    """The same in a German browser: the dialog, the reply, the passage, the list and a search."""
    page.goto("/")
    page.get_by_label("Benutzername").fill("admin")
    page.get_by_label("Passwort").fill(PASSWORD)
    page.get_by_label("Passwort").press("Enter")
    page.wait_for_load_state()
    page.goto(f"/projects/{slug}/chats/{chat}/")
    expect(page.get_by_role("link", name="[1]")).to_be_visible()
    picture(page, "reply-german")
    drop(page, "[data-composer]", files)
    expect(page.get_by_label("Nur in diesem Chat")).to_be_checked()
    picture(page, "chat-german")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="[1]").click()
    expect(page.locator("mark")).to_contain_text("24 newton metres")
    expect(page.get_by_role("heading", name="S. 2", exact=True)).to_be_visible()
    see_page_image(page)
    picture(page, "viewer-german")
    page.goto(f"/projects/{slug}/files/")
    expect(page.get_by_text("in 1 Antwort verwendet")).to_be_visible()
    picture(page, "list-german")
    page.goto(f"/projects/{slug}/files/?q=torque")
    expect(page.get_by_role("link", name="manual.pdf, S. 2")).to_be_visible()
    picture(page, "search-german")


def test_a_new_chat_begins_with_a_file_and_keeps_the_draft(open_page, server, sign_in, say):
    slug = created(server)["slug"]
    page = open_page()
    sign_in(page)
    page.goto(f"/projects/{slug}/")
    page.get_by_label("Message", exact=True).fill("How heavy is the pump?")
    page.get_by_label("Who can read this chat").select_option("private")
    drop(page, "[data-composer]", {"weights.md": b"# Weights\n\nThe pump weighs 31 kilograms.\n"})
    page.locator("#chat-files").get_by_role("button", name="Add").click()
    expect(page.get_by_text("1 file added.")).to_be_visible()
    expect(page.locator("[data-part=chips]")).to_contain_text("private")
    expect(page.get_by_label("Message", exact=True)).to_have_value("How heavy is the pump?")
    server.manage("shell", "-c", READ)
    server.model.say("31 kilograms [1].")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("link", name="[1]").wait_for()
    assert "31 kilograms" in str(server.model.requests[-1]["messages"])
    page.goto(f"/projects/{slug}/")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")


def test_send_waits_for_files_that_are_chosen_and_not_added(open_page, server, sign_in, say):
    slug = created(server)["slug"]
    chat = server.api("POST", f"projects/{slug}/sessions/", {"title": "Pumps"})["id"]
    page = open_page()
    sign_in(page)
    box, files = page.get_by_label("Message", exact=True), page.locator("#chat-files")
    notice = page.get_by_text("These files are not added yet.")
    for path in ("", f"chats/{chat}/"):
        page.goto(f"/projects/{slug}/{path}")
        box.fill("How heavy is the pump?")
        drop(page, "[data-composer]", {"weights.md": b"The pump weighs 31 kilograms.\n"})
        expect(notice).to_be_hidden()
        page.keyboard.press("Escape")
        box.press("Enter")
        expect(notice).to_be_visible()
        expect(box).to_have_value("How heavy is the pump?")
        picture(page, "unadded")
        files.get_by_role("button", name="Cancel").click()
        expect(files).to_be_hidden()
    server.model.say("That is not known.")
    box.press("Enter")
    page.get_by_text("That is not known.").wait_for()


def test_files_are_not_added_to_a_chat_that_would_lose_images(open_page, server, sign_in):
    slug = created(server)["slug"]
    chat = server.api("POST", f"projects/{slug}/sessions/", {"title": "Pumps"})["id"]
    page = open_page()
    sign_in(page)
    page.goto(f"/projects/{slug}/chats/{chat}/")
    page.locator("[data-picker] input").set_input_files(
        {"name": "pump.png", "mimeType": "image/png", "buffer": image()}
    )
    expect(page.locator(".picture img")).to_be_visible()
    drop(page, "[data-composer]", {"weights.md": b"The pump weighs 31 kilograms.\n"})
    page.locator("#chat-files").get_by_role("button", name="Add").click()
    expect(page.get_by_text("Your message has unsent images.")).to_be_visible()
    expect(page.locator(".picture img")).to_have_count(1)


def test_files_do_not_begin_a_chat_that_would_lose_images(open_page, server, sign_in):
    page = open_page()
    sign_in(page)
    page.goto(f"/projects/{created(server)['slug']}/")
    address = page.url
    page.locator("[data-picker] input").set_input_files(
        {"name": "pump.png", "mimeType": "image/png", "buffer": image()}
    )
    drop(page, "[data-composer]", {"weights.md": b"The pump weighs 31 kilograms.\n"})
    page.locator("#chat-files").get_by_role("button", name="Add").click()
    expect(page.get_by_text("Your message has unsent images.")).to_be_visible()
    assert page.url == address
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Files", exact=True).click()
    page.locator("#chat-files").get_by_role("button", name="Add").click()
    expect(page.get_by_text("1 file added.")).to_be_visible()
