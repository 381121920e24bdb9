"""A slash in an empty composer opens the saved prompts; all of it works with the keyboard."""

from playwright.sync_api import expect

from tests.e2e.conftest import created


def test_a_saved_prompt_is_chosen_and_filled_in_by_keyboard(page, server):
    slug = created(server)["slug"]
    for name, text in (("weekly", "Report {{week}} for {{customer}}."), ("hello", "Say hello.")):
        body = {"name": name, "text": text, "scope": "project"}
        server.api("POST", f"projects/{slug}/prompts/", body)
    server.model.say("Noted.")
    page.goto(f"/projects/{slug}/")
    # The first request is answered like that of somebody who is signed out.
    away = {"status": 302, "headers": {"location": "/account/"}}
    page.route("**/prompts/?part=list", lambda route: route.fulfill(**away), times=1)
    box = page.get_by_label("Message", exact=True)
    options = page.get_by_role("listbox", name="Prompts").get_by_role("option")
    with page.expect_response("**/account/"):
        box.press_sequentially("/")
    page.wait_for_timeout(300)
    box.press("Backspace")
    box.press_sequentially("/")
    expect(options).to_have_count(2)
    expect(options.first).to_contain_text("/hello")
    box.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    box.press("Escape")
    expect(options).to_have_count(0)
    box.press_sequentially("we")
    expect(options).to_have_count(1)
    box.press("Enter")
    expect(box).to_have_value("Report {{week}} for {{customer}}.")
    page.keyboard.type("12")
    box.press("Tab")
    page.keyboard.type("Ana")
    expect(box).to_have_value("Report 12 for Ana.")
    box.press("Enter")
    expect(page.locator(".turn").first).to_contain_text("Report 12 for Ana.")


def test_names_and_placeholders_with_umlauts_work_as_others(page, server):
    slug = created(server)["slug"]
    body = {"name": "übergabe", "text": "Für {{Größe}} Boote.", "scope": "project"}
    server.api("POST", f"projects/{slug}/prompts/", body)
    page.goto(f"/projects/{slug}/")
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("/üb")
    expect(page.get_by_role("listbox", name="Prompts").get_by_role("option")).to_have_count(1)
    box.press("Enter")
    page.keyboard.type("drei")
    expect(box).to_have_value("Für drei Boote.")
