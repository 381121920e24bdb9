"""What a page has and did not send yet stays when something else on it is sent."""

import pytest
from playwright.sync_api import Page, expect

from tests.chat.pictures import picture
from tests.e2e.conftest import created
from tests.e2e.test_images import upload
from tests.membership import join
from tests.server import PASSWORD
from tests.torture.clients import Api

FACTS = {"billing": "the payments team", "the café": "Ines"}


@pytest.fixture
def project(page, server) -> str:
    """The page of a project that knows two facts; its message box has a text and an image."""
    slug = created(server)["slug"]
    for subject, owner in FACTS.items():
        fact = {"subject": subject, "predicate": "belongs to", "object": owner}
        server.api("POST", f"projects/{slug}/facts/", fact)
    page.goto(f"/projects/{slug}/")
    page.locator("[data-picker] input").set_input_files(upload(picture()))
    expect(page.locator(".picture")).to_be_visible()
    page.get_by_label("Message", exact=True).fill("Look at")
    return slug


def sentence(page: Page, text: str):
    return page.locator(".knows > li").filter(has_text=text)


def edit(page: Page, text: str, correction: str) -> None:
    sentence(page, text).get_by_label("Edit", exact=True).click()
    expect(sentence(page, text).locator("textarea")).to_be_focused()
    sentence(page, text).locator("textarea").fill(correction)


def test_decisions_on_sentences_leave_a_message_and_other_corrections(page, project):
    edit(page, "Billing", "the platform team")
    sentence(page, "The café").get_by_role("button", name="This is right").click()
    expect(sentence(page, "The café")).to_contain_text("confirmed")
    expect(page.get_by_text("Confirmed.", exact=True)).to_be_visible()
    expect(sentence(page, "Billing").locator("textarea")).to_have_value("the platform team")
    sentence(page, "Billing").get_by_role("button", name="Save").click()
    expect(sentence(page, "Billing belongs to the platform team.")).to_be_visible()
    expect(page.locator(".knows textarea:visible")).to_have_count(0)
    expect(page.locator(".picture")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("Look at")


def test_a_correction_that_came_too_late_stays_beside_the_new_version(page, project, server):
    edit(page, "Billing", "the platform team")
    fact = server.api("GET", f"projects/{project}/facts/?subject=billing")["results"][0]
    server.api("PATCH", f"projects/{project}/facts/{fact['id']}/", {"object": "nobody"})
    sentence(page, "Billing").get_by_role("button", name="Save").click()
    expect(sentence(page, "Billing belongs to nobody.")).to_be_visible()
    expect(sentence(page, "Billing").get_by_role("alert")).to_contain_text("Someone changed this")
    expect(sentence(page, "Billing").locator("textarea")).to_have_value("the platform team")
    sentence(page, "Billing").get_by_role("button", name="Save").click()
    expect(sentence(page, "Billing belongs to the platform team.")).to_be_visible()
    expect(page.locator(".picture")).to_be_visible()


def test_the_reason_is_shown_if_a_decision_fails(page, project, server, open_page):
    edit(page, "Billing", "the platform team")
    server.api("PATCH", f"projects/{project}/", {"archived": True})
    sentence(page, "Billing").get_by_role("button", name="Save").click()
    expect(sentence(page, "Billing").get_by_role("alert")).to_contain_text("archived")
    expect(sentence(page, "Billing").locator("textarea")).to_have_value("the platform team")
    # The browser reports the status of the response.
    assert "409" in open_page.complaints.pop()


def test_pinned_texts_that_are_edited_stay_when_another_is_saved_or_moved(page, server):
    slug = created(server)["slug"]
    for name in ("first", "second"):
        server.api("PUT", f"projects/{slug}/blocks/{name}/", {"content": name})
    page.goto(f"/projects/{slug}/memory/blocks/")
    first, second = page.get_by_label("first"), page.get_by_label("second")
    first.fill("first, edited")
    second.fill("second, edited")
    with page.expect_navigation():
        page.get_by_role("button", name="Move up").click()
    expect(page.locator(".block-card textarea").first).to_have_value("second, edited")
    expect(first).to_have_value("first, edited")
    for name in ("second", "first"):
        card = page.locator(".block-card").filter(has=page.get_by_label(name))
        with page.expect_navigation():
            card.get_by_role("button", name="Save").click()
        expect(first).to_have_value("first, edited")
    page.reload()
    expect(first).to_have_value("first, edited")
    expect(second).to_have_value("second, edited")


def test_settings_that_are_edited_stay_when_others_are_saved(page, server):
    slug = created(server)["slug"]
    page.goto(f"/projects/{slug}/settings/")
    instructions, search = page.get_by_label("Instructions"), page.get_by_label("Search language")
    instructions.fill("Answer in one sentence.")
    search.select_option("german")
    page.get_by_role("link", name="Members").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Create link").click()
    page.get_by_role("link", name="Memory", exact=True).last.click()
    memory = page.get_by_label("Review new memories")
    memory.check()
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    expect(memory).to_be_checked()
    page.get_by_role("link", name="General").click()
    expect(instructions).to_have_value("Answer in one sentence.")
    expect(search).to_have_value("german")
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    assert server.api("GET", f"projects/{slug}/")["instructions"] == "Answer in one sentence."


def test_a_prompt_that_is_written_stays_when_another_is_deleted(page, server):
    slug = created(server)["slug"]
    server.api("POST", f"projects/{slug}/prompts/", {"name": "report", "text": "Write it."})
    page.goto(f"/projects/{slug}/prompts/")
    name, scope = page.get_by_label("Name"), page.get_by_label("For all members").first
    name.fill("weekly")
    scope.check()
    with page.expect_navigation():
        page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="report")).to_have_count(0)
    expect(name).to_have_value("weekly")
    expect(scope).to_be_checked()


@pytest.fixture
def note(page, server):
    """The box for a new note, in which one is written."""
    page.goto(f"/projects/{created(server)['slug']}/notes/")
    box = page.get_by_label("New note")
    box.fill("The door code is 4711.")
    return box


def test_a_note_that_was_refused_is_still_there_when_one_goes_back(page, note, open_page):
    page.route("**/notes/", lambda route: route.fulfill(status=429), times=1)
    with page.expect_navigation():
        page.get_by_role("button", name="Add", exact=True).click()
    page.go_back()
    expect(note).to_have_value("The door code is 4711.")
    assert "429" in open_page.complaints.pop()


def test_a_note_that_was_sent_after_the_session_ended_is_there_after_signing_in(page, note):
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(note).to_have_value("The door code is 4711.")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("article")).to_contain_text("The door code is 4711.")
    expect(note).to_have_value("")


def test_a_note_is_not_shown_to_another_user_who_signs_in(page, note, server):
    slug = page.url.split("/")[-3]
    join(Api(server.url, server.token), slug, "edgar", server.edgars_token)
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("Username").fill("edgar")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**/projects/{slug}/notes/")
    expect(page.get_by_label("New note")).to_have_value("")
