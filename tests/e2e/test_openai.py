"""Messages from the browser reach OpenAI clients, and the reverse."""

import re

from openai import OpenAI
from playwright.sync_api import expect

WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object"}},
}


def client(server, key: str = "") -> OpenAI:
    headers = {"X-Strata-Session": key} if key else {}
    address = f"{server.url}/v1"
    return OpenAI(base_url=address, api_key=server.token, default_headers=headers, max_retries=0)


def ask(server, slug: str, text: str, key: str = "", **fields):
    messages = [{"role": "user", "content": text}]
    return client(server, key).chat.completions.create(model=slug, messages=messages, **fields)


def slug_of(page) -> str:
    return re.search("/projects/([^/]+)/", page.url)[1]


def test_memory_written_in_the_browser_is_in_a_programs_prompt(server, open_page, sign_in, begin):
    page = open_page()
    sign_in(page)
    begin(page)
    slug = slug_of(page)
    page.goto(f"/projects/{slug}/notes/")
    page.get_by_label("New note").fill("The otter pond freezes in the first week of March.")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("otter pond freezes")).to_be_visible()
    server.manage("reindex", f"--project={slug}")
    ask(server, slug, "When does the otter pond freeze?")
    [request] = server.model.requests
    contents = [
        message["content"] for message in request["messages"] if message["role"] == "system"
    ]
    assert any("otter pond freezes in the first week" in content for content in contents)


def test_a_programs_message_is_read_and_remembered_in_the_browser(
    server, open_page, sign_in, begin
):
    page = open_page()
    sign_in(page)
    begin(page)
    slug = slug_of(page)
    server.model.call(("call_1", "get_weather", '{"city": "Köln"}'), text="I will look.")
    ask(server, slug, "The ferry to Juist leaves at seven.", "ferry", tools=[WEATHER])
    page.goto(f"/projects/{slug}/")
    page.get_by_role("link", name="The ferry to Juist leaves at seven.").first.click()
    expect(page.locator("[data-turn]")).to_have_count(2)
    page.get_by_text("Calls the tool get_weather").click()
    expect(page.get_by_text("Köln")).to_be_visible()
    server.model.reset()
    server.manage("memory_cycle", f"--project={slug}", "--now=2036-01-01T00:00:00Z")
    page.goto(f"/projects/{slug}/memory/")
    expect(page.get_by_text("ferry to Juist").first).to_be_visible()


def test_a_conversation_goes_on_in_the_browser_and_back(server, open_page, sign_in, begin):
    page = open_page()
    sign_in(page)
    begin(page)
    slug = slug_of(page)
    ask(server, slug, "The ferry to Juist leaves at seven.", "ferry")
    page.goto(f"/projects/{slug}/")
    page.get_by_role("link", name="The ferry to Juist leaves at seven.").first.click()
    server.model.say("Ana does.")
    page.get_by_label("Message", exact=True).fill("Who sails it?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Ana does.")).to_be_visible()
    ask(server, slug, "Is that sure?", "ferry")
    contents = [message["content"] for message in server.model.requests[-1]["messages"][1:]]
    assert contents[-3:] == ["Who sails it?", "Ana does.", "Is that sure?"]
    expect(page.get_by_text("Is that sure?")).to_be_visible()
