"""Models in a browser: a key that is pasted, a model for a project, a chat and one answer."""

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.scripted import ScriptedModel
from tests.server import PASSWORD
from tests.shape.ports import reserved_port

KEY = "sk-right-0123456789"


@pytest.fixture
def lab() -> Iterator[ScriptedModel]:
    """Another server of models, which accepts one key."""
    with ScriptedModel(default="From the lab.") as model:
        model.key = KEY
        model.models = ["large", "small"]
        yield model


@pytest.fixture
def newcomer(open_page, server, sign_in) -> Page:
    """An administrator who has seen nothing yet."""
    name = f"modeller-{uuid4().hex[:6]}"
    account = (f"--username={name}", f"--email={name}@example.org")
    server.manage("createsuperuser", "--noinput", "--verbosity=0", *account)
    page = open_page()
    sign_in(page, name)
    return page


def last_reply(page: Page):
    return page.locator(".turn:not(.person)").last


def add(page: Page, address: str, key: str) -> None:
    page.get_by_label("Provider", exact=True).select_option("compatible")
    page.get_by_label("API key", exact=True).fill(key)
    page.get_by_label("Name", exact=True).fill("lab")
    page.get_by_label("Address", exact=True).fill(address)
    page.get_by_role("button", name="Test and save").click()


def test_from_a_pasted_key_to_answers_of_two_models(newcomer, open_page, lab, say):
    page = newcomer
    page.get_by_text("Choose a model").click()
    page.get_by_role("link", name="Add a provider and its API key").click()
    if page.get_by_label("Password", exact=True).count():
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.locator("main form button").first.click()
    # Reserved, and nobody listens.
    reserved, port = reserved_port()
    dead = f"http://127.0.0.1:{port}/v1"
    for address, key, advice in (
        (lab.base_url, "sk-wrong", "rejected the key"),
        (dead, KEY, "Check the address"),
        ("http://10.0.0.1/v1", KEY, "STRATA_OUTBOUND_ALLOW"),
    ):
        add(page, address, key)
        expect(page.locator(".field .error")).to_contain_text(advice)
    reserved.close()
    open_page.complaints[:] = [it for it in open_page.complaints if "400" not in it]
    add(page, lab.base_url, KEY)
    # Back on the page that asked for it, with the models to choose from.
    page.get_by_text("Choose a model").click()
    page.get_by_label("Model", exact=True).select_option("lab:small")
    page.get_by_label("Name", exact=True).fill("Laboratory")
    page.get_by_role("button", name="Create project").click()
    say(page, "Hello")
    expect(last_reply(page)).to_contain_text("From the lab.")
    expect(last_reply(page).locator(".model")).to_have_text("lab:small")

    last_reply(page).locator("[data-action=more]").click()
    page.get_by_role("link", name="Regenerate with…").click()
    page.get_by_label("Model", exact=True).select_option("lab:large")
    page.locator("[data-slot]").get_by_role("button", name="Regenerate").click()
    expect(last_reply(page).locator(".model")).to_have_text("lab:large")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(last_reply(page).locator(".versions")).to_contain_text("2/2")

    page.get_by_role("link", name="lab:small").click()
    drawer = page.locator("[data-drawer]")
    drawer.get_by_label("Model", exact=True).select_option("lab:large")
    drawer.get_by_label("Temperature").fill("0.5")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_role("status")).to_have_text("Saved.")
    expect(page.locator("#chat-model-link")).to_have_text("lab:large")
    say(page, "And now?")
    expect(page.locator(".turn")).to_have_count(4)
    expect(last_reply(page)).to_contain_text("From the lab.")
    expect(last_reply(page).locator(".model")).to_have_text("lab:large")
    expect(page).to_have_url(re.compile("/chats/"))
    assert [request["model"] for request in lab.requests] == ["small", "large", "large"]
    assert [request.get("temperature") for request in lab.requests] == [None, None, 0.5]
