"""From the first start to the first remembered chat; and what else somebody new does."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

IMPORTED = "The export of the ledger moves to Thursday at nine."


@pytest.fixture
def newcomer(open_page, server, sign_in) -> Page:
    """An administrator who has seen nothing yet."""
    name = f"newcomer-{uuid4().hex[:6]}"
    account = (f"--username={name}", f"--email={name}@example.org")
    server.manage("createsuperuser", "--noinput", "--verbosity=0", *account)
    page = open_page()
    sign_in(page, name)
    return page


def test_from_the_welcome_to_the_first_remembered_chat(newcomer, server, say):
    page = newcomer
    expect(page.get_by_role("heading", name="Welcome to Strata")).to_be_visible()
    server.model.say("Hello, I am scripted.")
    page.get_by_text("Choose a model").click()
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_role("status")).to_contain_text("Hello, I am scripted.")
    page.get_by_label("Name", exact=True).fill("Ledger")
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="New chat")).to_be_visible()
    slug = page.url.rstrip("/").rpartition("/")[2]
    say(page, "The cutover is on 3 March and the platform team owns it.")
    expect(page.locator(".turn").nth(1)).to_contain_text("Scripted.")
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    server.manage("memory_cycle", f"--project={slug}", f"--now={later}")

    page.get_by_role("link", name="Memory", exact=True).click()
    expect(page.locator(".block")).to_contain_text("The cutover is on 3 March")
    page.get_by_role("link", name="New chat").click()
    say(page, "When is it?")
    expect(page.locator(".turn").nth(1)).to_contain_text("Scripted.")
    page.locator("a.sources-link").click()
    summary = page.locator(".memory-item.c-conversation", has_text="The cutover is on 3 March")
    expect(summary.first).to_be_visible()


def test_a_double_click_makes_one_demo_which_opens_on_questions(newcomer, server):
    code = (
        "from config.postgres.server import install_broker; from django.conf import settings;"
        " install_broker(settings.CELERY_BROKER_URL)"
    )
    server.manage("shell", "-c", code)
    page = newcomer
    page.get_by_role("button", name="Explore the demo").dblclick()
    expect(page.get_by_role("progressbar")).to_be_visible()
    slug = page.url.rstrip("/").rpartition("/")[2]
    page.goto("/?all")
    expect(page.locator("main").get_by_role("link", name="Island Ferry")).to_have_count(1)
    page.go_back()
    expect(page.get_by_role("progressbar")).to_be_visible()
    # What a worker would do.
    code = (
        "from memory import demo; from projects.models import Project;"
        f" demo.make(Project.objects.get(slug='{slug}').pk)"
    )
    server.manage("shell", "-c", code)
    server.model.say("The payments team, for two weeks now.")
    page.get_by_role("button", name="Who owns billing now, and since when?").click()
    answer = page.locator(".turn").nth(1)
    expect(answer).to_contain_text("The payments team")
    expect(answer.locator("a.sources-link")).to_contain_text("Used")


def test_a_file_is_imported_with_its_progress_in_sight(page, server, begin, tmp_path):
    begin(page)
    page.get_by_role("link", name="Imports").click()
    file = tmp_path / "talk.jsonl"
    line = {"session": "a", "role": "user", "content": IMPORTED, "created_at": "2026-03-01"}
    file.write_text(json.dumps(line))
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    mine = page.get_by_role("region", name="Your imports")
    expect(mine).to_contain_text("queued")
    # What a worker would do.
    server.manage(
        "shell",
        "-c",
        "from chat.importers import jobs; from chat.models import Import;"
        " jobs.run_import(Import.objects.order_by('-created_at').first().pk)",
    )
    expect(mine).to_contain_text("1 chat: 1 message imported", timeout=15_000)
    page.get_by_role("link", name="New chat").click()
    expect(page.locator("main")).to_contain_text("1 Mar")


def test_a_message_is_searched_and_opened(page, demo):
    page.goto(f"/projects/{demo}/search/")
    page.get_by_label("Search messages, memories, facts and files").fill(
        "Who may travel with a wheelchair?"
    )
    page.get_by_role("main").get_by_role("button", name="Search").click()
    result = page.locator(".recall-results > li", has_text="companion")
    result.first.get_by_text("Why this result").click()
    expect(result.first.locator("meter").first).to_be_visible()
    result.first.get_by_role("link").first.click()
    expect(page.locator(".turn:target")).to_contain_text("companion")


def test_all_of_it_by_keyboard_alone(page, demo, server):
    page.goto(f"/projects/{demo}/")
    page.wait_for_load_state()
    # The message box has the focus: a chat begins with writing.
    server.model.say("On deck 2.")
    page.keyboard.type("Where are the wheelchair places?")
    page.keyboard.press("Enter")
    reply = page.locator(".turn").nth(1)
    expect(reply).to_contain_text("On deck 2.")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    sources_link = reply.locator("a.sources-link")
    for _ in range(60):
        if sources_link.evaluate("(one) => one === document.activeElement"):
            break
        page.keyboard.press("Shift+Tab")
    expect(sources_link).to_be_focused()
    page.keyboard.press("Enter")
    drawer = page.locator("[data-drawer]")
    expect(drawer.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(sources_link).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("memory")
    expect(page.locator("[data-palette-result].selected")).to_contain_text("Memory")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("remembers")
