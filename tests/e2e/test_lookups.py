"""A model finds what its prompt does not hold, and the reader of its reply sees how."""

import json
import os
from pathlib import Path
from threading import Semaphore

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import created
from tests.scripted import Answer

SECRET = "The spare key of the boathouse hangs behind the third oar."
# Excerpts of it are too many for one prompt.
TALK = [f"Oar number {number} of the boathouse was painted again." for number in range(40)]


@pytest.fixture
def boathouse(server) -> str:
    """The path of a project in which a detail was said once, in a long chat."""
    slug = created(server)["slug"]
    server.api("PATCH", f"projects/{slug}/", {"share_raw_turns": True})
    session = server.api("POST", f"projects/{slug}/sessions/", {"title": "Boathouse"})["id"]
    for text in [*TALK[:20], SECRET, *TALK[20:]]:
        body = {"content": text, "reply": False, "created_at": "2026-03-02T09:00:00Z"}
        server.api("POST", f"sessions/{session}/messages/", body)
    server.manage("reindex", f"--project={slug}")
    return slug


def last_reply(page: Page):
    return page.locator(".turn:not(.person)").last


def picture(page: Page, name: str) -> None:
    """Keep a picture if STRATA_SCREENSHOTS names a folder."""
    if folder := os.environ.get("STRATA_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"lookups-{name}.png")


def searches(request) -> Answer:
    return Answer(
        finish="tool_calls",
        calls=(("1", "search_memory", '{"query": "Where does the spare key hang?"}'),),
    )


def answers_from_result(request) -> str:
    """Repeat what the tool returned about the key."""
    [result] = [it["content"] for it in request["messages"] if it["role"] == "tool"]
    return "I found it: " + next(it for it in result.splitlines() if "spare key" in it)


def test_a_model_with_tools_finds_a_detail_that_did_not_fit(page, server, boathouse, say):
    page.goto(f"/projects/{boathouse}/")
    silence = Semaphore(0)
    server.model.queue(searches)
    server.model.queue(lambda request: Answer(answers_from_result(request), permits=silence))
    say(page, "I have locked myself out, what now?")
    # While the model thinks about the result, the page shows the search.
    lookup = last_reply(page).locator(".lookup")
    expect(lookup).to_contain_text("Searched the memory: “Where does the spare key hang?”")
    expect(lookup).to_contain_text("results")
    expect(page.locator(".turn[aria-busy]")).to_have_count(1)
    picture(page, "live")
    silence.release(100)
    expect(last_reply(page)).to_contain_text("behind the third oar")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    # The prompt did not hold it.
    assert SECRET not in json.dumps(server.model.requests[0]["messages"])
    page.reload()
    expect(lookup).to_contain_text("Searched the memory")
    picture(page, "afterwards")
    last_reply(page).locator(".sources-link").click()
    drawer = page.locator("[data-drawer]")
    drawer.get_by_text("Everything in the prompt").click()
    expect(drawer.get_by_role("heading", name="Found by search")).to_be_visible()
    expect(drawer).to_contain_text(SECRET)
    picture(page, "receipt")


def test_the_start_of_a_long_chat_can_be_read(page, server, say):
    """The running chat has more messages than its prompt may hold."""
    project = created(server)
    slug = project["slug"]
    server.api("PATCH", f"projects/{slug}/", {"history_limit": 50})
    session = server.api("POST", f"projects/{slug}/sessions/", {"title": "Long"})["id"]
    for text in [SECRET, *TALK, *TALK]:
        body = {"content": text, "reply": False}
        server.api("POST", f"sessions/{session}/messages/", body)
    server.model.call(("1", "read_chat", "{}"))
    server.model.queue(answers_from_result)
    page.goto(f"/projects/{slug}/chats/{session}/")
    say(page, "I have locked myself out, what now?")
    expect(last_reply(page)).to_contain_text("behind the third oar")
    first, _ = server.model.requests
    history = [message for message in first["messages"] if message["role"] == "user"]
    assert len(history) == 50 and SECRET not in json.dumps(history)


def test_a_second_reader_sees_the_lookups_too(two, server, say):
    mine, theirs = two
    silence = Semaphore(0)
    server.model.queue(searches, Answer("Nothing is known.", permits=silence))
    say(mine, "Where is the key?")
    for page in two:
        expect(page.locator(".lookup")).to_contain_text("0 results")
    silence.release(100)
    for page in two:
        expect(last_reply(page)).to_contain_text("Nothing is known.")
        expect(page.locator(".lookup")).to_have_count(1)


def test_messages_that_were_read_are_in_the_receipt(page, server, boathouse, say):
    [session] = server.api("GET", f"projects/{boathouse}/sessions/")["results"]
    arguments = json.dumps({"id": session["id"], "around": 21})
    server.model.queue(Answer(finish="tool_calls", calls=(("1", "read_chat", arguments),)))
    server.model.say("Behind the third oar.")
    page.goto(f"/projects/{boathouse}/")
    say(page, "I have locked myself out, what now?")
    expect(last_reply(page)).to_contain_text("Behind the third oar.")
    expect(page.locator(".lookup")).to_contain_text("Read in a chat · 25 results")
    last_reply(page).locator(".sources-link").click()
    drawer = page.locator("[data-drawer]")
    drawer.get_by_text("Everything in the prompt").click()
    expect(drawer.get_by_role("heading", name="Read in a chat")).to_be_visible()
    expect(drawer).to_contain_text(SECRET)
    picture(page, "read")


def test_a_refused_call_shows_why(page, server, begin, say):
    begin(page)
    server.model.call(("1", "search_memory", "{}"))
    server.model.say("Sorry.")
    say(page, "Where is the key?")
    expect(last_reply(page)).to_contain_text("Sorry.")
    expect(page.locator(".lookup")).to_contain_text("failed: query: Field required")
