"""Without JavaScript: a chat, a decision on what a project knows, and forgetting, by forms."""

from playwright.sync_api import Page, expect

from tests.e2e.conftest import created


def test_chat_knowledge_and_forgetting_work_by_forms(open_page, sign_in, server):
    signing = open_page()
    sign_in(signing)
    page: Page = open_page(java_script_enabled=False, storage_state=signing.context.storage_state())
    slug = created(server)["slug"]
    page.goto(f"/projects/{slug}/")
    server.model.say("On **Thursday**.")
    page.locator("textarea[name=content]").fill("When is the cutover?")
    page.get_by_role("button", name="Send").click()
    # The page of a growing reply loads itself again.
    expect(page.locator(".turn strong")).to_have_text("Thursday")

    statement = {"subject": "billing", "predicate": "is owned by", "object": "platform"}
    server.api("POST", f"projects/{slug}/facts/", statement)
    page.goto(f"/projects/{slug}/overview/")
    known = page.locator(".knows > li")
    expect(known).to_contain_text("Billing is owned by platform.")
    known.locator("summary").click()
    known.locator("textarea").fill("payments")
    known.get_by_role("button", name="Save").click()
    expect(known).to_contain_text("Billing is owned by payments.")
    known.get_by_role("button", name="This is right").click()
    expect(known).to_contain_text("confirmed")

    page.goto(f"/projects/{slug}/")
    page.get_by_role("link", name="When is the cutover?").first.click()
    page.locator(".turn.person summary[data-action=more]").click()
    page.locator(".turn.person").get_by_role("link", name="Forget…").click()
    page.get_by_role("button", name="Forget").last.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert "cutover" not in page.locator("main").inner_text()
