"""The billing example in the browser: owner at a time, source, and removal of a fact."""

import json

from playwright.sync_api import Page, expect

JANUARY_2027 = "2027-01-15T12:00:00Z"


def answer(team: str) -> str:
    extracted_fact = {"subject": "billing", "predicate": "is owned by", "object": team, "line": 1}
    extracted_fact |= {"since": None, "personal": False, "confidence": 0.9}
    return json.dumps({"summary": ["Who owns billing."], "facts": [extracted_fact]})


def remembered(server, project: str, text: str, team: str, at: str) -> None:
    """Has a chat recorded that says `text`, and its summary written."""
    title = {"title": text[:40]}
    session = server.api("POST", f"projects/{project}/sessions/", title)
    body = {"content": text, "reply": False, "created_at": at}
    server.api("POST", f"sessions/{session['id']}/messages/", body)
    server.model.say(answer(team))
    server.manage("memory_cycle", "--project", project, "--now", JANUARY_2027)


def test_billing_as_of_april_today_and_after_may_is_forgotten(page: Page, begin, server):
    begin(page)
    slug = page.url.rstrip("/").rpartition("/")[2]
    server.api("PATCH", f"projects/{slug}/", {"system_model": "openai-chat:scripted"})
    platform = "The platform team owns billing."
    payments = "The payments team owns billing."
    remembered(server, slug, platform, "platform team", "2026-03-01T10:00:00Z")
    remembered(server, slug, payments, "payments team", "2026-05-01T10:00:00Z")

    page.get_by_role("link", name="Facts").click()
    table = page.get_by_role("table")
    expect(table).to_contain_text("payments team")
    expect(table).not_to_contain_text("platform team")

    page.get_by_label("True on").fill("2026-04-15")
    page.get_by_role("button", name="Show").click()
    expect(table).to_contain_text("platform team")
    expect(table).to_contain_text("1 May 2026")
    expect(table).not_to_contain_text("payments team")
    table.get_by_role("link", name="1 Mar 2026").click()
    expect(page.locator(".turn:target")).to_contain_text(platform)

    page.goto(f"/projects/{slug}/memory/facts/")
    table.get_by_role("link", name="1 May 2026").click()
    turn = page.locator(".turn:target")
    expect(turn).to_contain_text(payments)
    messages = server.api("GET", f"sessions/{page.url.split('/chats/')[1].split('/')[0]}/messages/")
    server.api("POST", f"projects/{slug}/forget/", {"message": messages["results"][0]["id"]})
    page.goto(f"/projects/{slug}/memory/facts/")
    expect(table).to_contain_text("platform team")
    expect(page.get_by_role("main")).not_to_contain_text("payments team")


def test_a_fact_is_given_changed_and_closed_by_hand(page: Page, begin):
    begin(page)
    page.get_by_role("link", name="Facts").click()
    expect(page.get_by_text("No facts yet")).to_be_visible()
    page.get_by_label("Subject").fill("The door code")
    page.get_by_label("Predicate").fill("is")
    page.get_by_label("Object").fill("4711")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", name="The door code")).to_be_visible()

    page.get_by_text("Edit", exact=True).click()
    page.get_by_label("Object").fill("4712")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article.memory-item")).to_contain_text("4712")
    page.get_by_text("Earlier versions", exact=True).click()
    expect(page.get_by_text("The door code is 4711")).to_be_visible()

    page.get_by_role("heading", name="Mark as no longer true").click()
    page.get_by_role("button", name="Mark as no longer true").click()
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_role("table")).to_have_count(0)


def test_the_timeline_of_a_telephone_begins_at_the_newest_end(page: Page, begin, server):
    begin(page)
    slug = page.url.rstrip("/").rpartition("/")[2]
    for subject, since in (("provider", "2025-01-01"), ("billing", "2026-06-01")):
        fact = {"subject": subject, "predicate": "is", "object": f"the {subject}"}
        server.api("POST", f"projects/{slug}/facts/", fact | {"valid_from": f"{since}T10:00:00Z"})
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/projects/{slug}/memory/facts/?timeline")
    for subject in ("provider", "billing"):
        expect(page.locator("dt", has_text=subject)).to_be_in_viewport(ratio=1)
        text = page.locator("svg text", has_text=f"the {subject}").filter(visible=True)
        expect(text).to_be_in_viewport(ratio=1)
