"""Three tasks of a new user, each in at most four clicks."""

import re

import pytest
from playwright.sync_api import Page, expect

MOST = 4
COUNT = """addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true)"""


@pytest.fixture
def counted(open_page, sign_in, demo) -> Page:
    page = open_page(viewport={"width": 1400, "height": 900})
    sign_in(page)
    page.add_init_script(COUNT)
    return page


def clicks(page: Page) -> int:
    return page.evaluate("Number(sessionStorage.clicks ?? 0)")


def test_find_where_the_assistant_got_a_claim_from(counted, demo, server, say):
    counted.goto(f"/projects/{demo}/")
    server.model.say("Four on deck 2, two on the Selkie.")
    say(counted, "How many wheelchair places are there?")
    reply = counted.locator(".turn").nth(1)
    expect(reply).to_contain_text("Four on deck 2")
    expect(counted.locator("[aria-busy]")).to_have_count(0)
    reply.locator("a.sources-link").click()
    # Each line of a memory links to the message it was made of.
    line = counted.locator(".memory-item li", has_text="four wheelchair places").first
    line.get_by_role("link").click()
    expect(counted.locator(".turn:target")).to_contain_text("four wheelchair places")
    assert clicks(counted) <= MOST


def test_make_it_forget_something(counted, demo):
    counted.goto(f"/projects/{demo}/")
    counted.get_by_role("main").get_by_role(
        "link", name=re.compile("^What the new café till needs")
    ).click()
    turn = counted.locator(".turn", has_text="gets a new till")
    turn.hover()
    turn.locator("[data-action=more]").click()
    turn.get_by_role("link", name="Forget…").click()
    counted.get_by_role("button", name="Forget").click()
    expect(counted.get_by_role("heading", level=1)).to_have_text("Forget receipt")
    assert clicks(counted) <= MOST


def test_see_what_the_project_knew_in_a_given_month(counted, demo):
    counted.goto(f"/projects/{demo}/")
    counted.get_by_role("link", name="Memory", exact=True).click()
    day = counted.get_by_label("As of", exact=True)
    first = day.get_attribute("min")
    day.fill(first)
    expect(counted.locator("[data-picture]")).to_contain_text("forgotten later are not counted")
    expect(counted.locator(".block")).to_have_count(1)
    assert clicks(counted) <= MOST
