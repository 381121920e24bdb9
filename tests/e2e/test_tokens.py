"""API tokens in the browser: made, copied, used and revoked, with and without scripts."""

from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.e2e.test_every_page import AXE, violations
from tests.server import PASSWORD


def opens(server, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(f"{server.url}/api/v1/projects/", headers=headers)) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


def make_token(page) -> None:
    """Send the form. Pages share their sign-in, so only the first asks for the password."""
    with page.expect_navigation():
        page.get_by_role("button", name="Create token").click()
    if "/accounts/confirm/" in page.url:
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_token_is_made_shown_once_and_revoked(open_page, sign_in, server, scripts):
    page = open_page(java_script_enabled=scripts)
    sign_in(page)
    page.goto("/?all")
    page.locator("button.account").click()
    page.get_by_role("link", name="API tokens").click()
    name = f"Editor {scripts}"
    page.get_by_label("Name").fill(name)
    page.get_by_label("Expires after").select_option("30 days")
    make_token(page)
    token = page.get_by_label("Your new token").input_value()
    assert opens(server, token) == 200
    page.locator("button.account").click()
    page.get_by_role("link", name="Projects").click()
    page.locator("button.account").click()
    page.get_by_role("link", name="API tokens").click()
    expect(page.get_by_text(name, exact=True)).to_be_visible()
    expect(page.get_by_label("Your new token")).to_have_count(0)
    page.get_by_role("button", name=f"Revoke {name}").click()
    expect(page.get_by_text("The token was revoked.")).to_be_visible()
    expect(page.get_by_text(name, exact=True)).to_have_count(0)
    assert opens(server, token) == 401


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_that_shows_a_token_shuts_nobody_out(open_page, sign_in, theme):
    page = open_page(color_scheme=theme, bypass_csp=True)
    page.add_init_script(AXE)
    sign_in(page)
    page.goto("/account/tokens/")
    page.get_by_label("Name").fill("Dashboard")
    make_token(page)
    page.get_by_label("Your new token").wait_for()
    assert violations(page) == []
