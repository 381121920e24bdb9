"""A moderator's day, in the page and in the admin: approve three, reject one, edit one with its
diff, hide one, forget one and read its receipt.
"""

import json

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import created, talked

TOPICS = (
    "The replica stays up for seven days after the cutover",
    "Invoice numbers are gapless and per tenant",
    "The export of the ledger moves to Thursday at nine",
    "Refund webhooks are retried five times an hour",
    "Norway charges twenty five percent, with a reverse charge",
    "The load test reached nineteen hundred requests a second",
    "Dunning letters go out on the tenth of each month",
)


@pytest.fixture
def reviewed(page, server, begin, tmp_path) -> str:
    """The slug of a project in which a summary of each of TOPICS waits for review."""
    begin(page)
    slug = page.url.rstrip("/").rpartition("/")[2]
    page.get_by_role("link", name="Settings").click()
    page.locator(".tabs").get_by_role("link", name="Memory").click()
    page.get_by_label("Review new memories").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    lines = [
        {
            "session": f"chat {number}",
            "role": "user",
            "content": f"{topic}.",
            "created_at": f"2026-03-{number + 1:02}T09:00:00Z",
        }
        for number, topic in enumerate(TOPICS)
    ]
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    server.manage("import_conversations", str(file), "--project", slug, "--owner", "admin")
    server.manage("memory_cycle", "--project", slug)
    return slug


def row(page: Page, number: int) -> Locator:
    return page.locator(".queue > li", has_text=TOPICS[number])


def test_a_moderators_day_in_the_page(page: Page, reviewed: str):
    page.get_by_role("link", name="Review", exact=True).click()
    expect(page.locator(".queue > li")).to_have_count(len(TOPICS))
    expect(page.locator(".tabs [aria-current]").first).to_have_text("Needs review 7")

    for number in (0, 1, 2):
        row(page, number).get_by_role("checkbox").check()
    expect(page.locator("[data-selected-count]")).to_have_text("3 selected")
    page.get_by_label("Action", exact=True).select_option("Approve")
    page.get_by_role("button", name="Continue…").click()
    expect(page.locator(".selected li")).to_have_count(3)
    expect(page.locator(".diff ins", has_text=TOPICS[1])).to_be_visible()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Approved: 3.")

    row(page, 3).get_by_role("button", name="Reject").click()
    page.get_by_label("Reason").select_option("Outdated")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Rejected: 1.")
    expect(page.locator(".queue > li")).to_have_count(3)

    page.get_by_role("link", name="In use").click()
    row(page, 0).get_by_role("link").first.click()
    page.get_by_role("heading", name="Edit", exact=True).click()
    box = page.get_by_label("Text", exact=True)
    box.fill(box.input_value().replace("seven", "ten"))
    page.get_by_role("button", name="Preview changes").click()
    expect(page.locator(".texts del")).to_have_text("seven ")
    expect(page.locator(".texts ins")).to_have_text("ten ")
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(page.get_by_role("heading", name="Earlier versions")).to_be_visible()
    expect(page.locator("#texts ins")).to_have_text("ten ")

    page.get_by_role("link", name="Review", exact=True).click()
    page.get_by_role("link", name="In use").click()
    row(page, 1).get_by_role("link").first.click()
    page.get_by_role("button", name="Hide").click()
    expect(page.get_by_text("Nothing else has to be rewritten.")).to_be_visible()
    expect(page.locator(".diff del", has_text=TOPICS[1])).to_be_visible()
    page.get_by_role("button", name="Hide", exact=True).click()
    expect(page.get_by_role("button", name="Show again")).to_be_visible()

    page.get_by_role("link", name="Review", exact=True).click()
    page.get_by_role("link", name="In use").click()
    row(page, 2).get_by_role("link").first.click()
    page.get_by_role("link", name="Forget…").click()
    # Nothing is left, unless another answer is chosen.
    shown = page.locator(".destructive [data-answer]:visible")
    expect(shown).to_contain_text("message or reply to it")
    page.get_by_role("radio", name="No, keep them").check()
    expect(shown).to_contain_text("1 original message is kept in its chat.")
    expect(shown).not_to_contain_text("message or reply to it")
    page.get_by_role("radio", name="Yes, forget them too").check()
    expect(shown).to_contain_text("message or reply to it")
    page.get_by_role("button", name="Forget permanently").click()
    expect(page.get_by_role("heading", name="Forget receipt")).to_be_visible()
    expect(page.get_by_role("row", name="1 memory")).to_be_visible()
    expect(page.get_by_role("row", name="1 message or reply to it")).to_be_visible()
    expect(page.get_by_text("not found")).to_be_visible()

    page.get_by_role("link", name="Activity").first.click()
    for act in ("made Strata forget", "hid", "edited", "rejected"):
        expect(page.locator(".log > li", has_text=f"admin {act}")).to_have_count(1)
    expect(page.locator(".log > li", has_text="admin approved")).to_have_count(3)


def test_the_log_goes_on_by_itself(page: Page, reviewed: str, open_page, sign_in):
    page.goto(f"/projects/{reviewed}/memory/activity/")
    # One for each summary, and one for the import of the chats.
    expect(page.locator(".log > li")).to_have_count(len(TOPICS) + 1)
    other = open_page()
    sign_in(other)
    other.goto(f"/projects/{reviewed}/memory/review/")
    row(other, 0).get_by_role("button", name="Approve").click()
    other.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".log > li", has_text="admin approved")).to_have_count(1)


def test_a_moderators_day_in_the_admin(page: Page, reviewed: str):
    listed = f"/admin/memory/entry/?q={reviewed}&state=proposed"
    everything = f"/admin/memory/entry/?q={reviewed}"

    def picked(*topics: int) -> None:
        for topic in topics:
            page.locator("#result_list tbody tr", has_text=TOPICS[topic][:40]).get_by_role(
                "checkbox"
            ).check()

    def choose(action: str) -> None:
        page.get_by_label("Action:").select_option(action)
        page.get_by_role("button", name="Run").or_(
            page.get_by_role("button", name="Go", exact=True)
        ).click()

    page.goto(listed)
    expect(page.locator("#result_list tbody tr")).to_have_count(len(TOPICS))
    picked(0, 1, 2)
    choose("approve")
    expect(page.locator(".diff ins", has_text=TOPICS[1])).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved: 3.")).to_be_visible()

    picked(3)
    choose("reject")
    page.get_by_label("Reason").select_option("Outdated")
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Rejected: 1.")).to_be_visible()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)

    page.goto(everything)
    picked(0)
    choose("edit")
    box = page.get_by_label("Text:", exact=True)
    box.fill(box.input_value().replace("seven", "ten"))
    page.get_by_role("button", name="Preview changes").click()
    expect(page.locator(".diff del").first).to_have_text("seven ")
    expect(page.locator(".diff ins").first).to_have_text("ten ")
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(page.get_by_text("Edited: 1.")).to_be_visible()

    picked(1)
    choose("hide")
    page.get_by_role("button", name="Hide").click()
    expect(page.get_by_text("Hidden: 1.")).to_be_visible()

    picked(2)
    choose("forget")
    expect(page.locator(".facts")).to_contain_text("memory")
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
    expect(page.get_by_role("row", name="1 memory")).to_be_visible()
    page.goto(everything)
    expect(page.locator("#result_list tbody tr")).to_have_count(len(TOPICS) - 1)


def test_a_moderators_day_without_scripts_on_a_small_screen(open_page, sign_in, reviewed: str):
    page = open_page(java_script_enabled=False, viewport={"width": 390, "height": 800})
    sign_in(page)
    page.goto(f"/projects/{reviewed}/memory/review/")
    for number in (0, 1):
        row(page, number).get_by_role("checkbox").check()
    page.get_by_role("button", name="Continue…").click()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Approved: 2.")


def test_a_chat_that_was_deleted_is_brought_back(page: Page, begin, say, server):
    begin(page)
    server.model.say("Hello.")
    say(page, "Good morning")
    expect(page.locator(".turn:not(.person)").last).to_contain_text("Hello.")
    page.get_by_role("button", name="Chat settings").click()
    page.get_by_role("link", name="Delete chat").click()
    page.get_by_role("button", name="Delete chat").click()
    expect(page.get_by_text("“Good morning” was deleted.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".turn")).to_have_count(2)


def test_the_back_button_shows_nothing_that_was_forgotten(page: Page, server):
    project = created(server)
    secret = "The door code is 4711."
    session = talked(server, project, secret, "Noted.").split("/")[-2]
    page.goto(f"/projects/{project['slug']}/search/?q=door+code")
    expect(page.get_by_text(secret)).to_be_visible()
    page.goto("/account/")
    server.api("POST", f"projects/{project['slug']}/forget/", {"session": session})
    page.go_back()
    expect(page.get_by_role("searchbox").last).to_have_value("door code")
    assert secret not in page.content()
    # A browser may keep a whole page in its memory, but not the one of these tests.
    page.evaluate("window.stays = true")
    with page.expect_navigation():
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert not page.evaluate("window.stays")
