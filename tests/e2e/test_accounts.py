"""Passkeys in a real browser, whose device is Chromium's virtual one; and the pages at the door."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.test_every_page import AXE, THEMES, show, violations
from tests.server import PASSWORD


@pytest.fixture
def page(open_page, server) -> Page:
    """A browser with a device that knows its user, at an address with a name."""
    opened = open_page(base_url=server.url.replace("127.0.0.1", "localhost"))
    device = opened.context.new_cdp_session(opened)
    device.send("WebAuthn.enable")
    device.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
            }
        },
    )
    return opened


def show_the_password(page: Page, name: str = "") -> None:
    if name:
        page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in" if name else "Confirm", exact=True).click()


def test_a_passkey_is_made_and_signs_in_alone(page, running):
    account = ("--username=paula", "--email=paula@example.org")
    running.manage("createsuperuser", "--noinput", "--verbosity=0", *account)
    page.goto("/accounts/login/?next=/accounts/passkeys/")
    show_the_password(page, "paula")
    page.get_by_role("link", name="Add a passkey").click()
    show_the_password(page)
    page.get_by_label("Name").fill("Phone")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    expect(page.locator(".codes code")).to_have_count(10)
    page.goto("/accounts/passkeys/")
    expect(page.get_by_text("Phone", exact=True)).to_be_visible()
    expect(page.get_by_text("replaces the password")).to_be_visible()

    page.locator("button.account").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()

    page.goto("/account/")
    page.locator("button.account").click()
    page.get_by_role("button", name="Sign out").click()
    show_the_password(page, "paula@example.org")
    expect(page.get_by_role("heading", name="Two-factor authentication")).to_be_visible()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()

    page.goto("/accounts/passkeys/")
    page.get_by_role("link", name="Remove Phone").click()
    page.get_by_role("link", name="Use a passkey").click()
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No passkeys yet.")).to_be_visible()


def test_pages_at_the_door_shut_nobody_out(open_page):
    page = open_page(bypass_csp=True)
    page.add_init_script(AXE)
    problems = []
    for path in ("login", "signup", "password/forgotten", "inactive"):
        page.goto(f"/accounts/{path}/")
        for theme, rules in THEMES.items():
            show(page, theme)
            problems += [f"{path}, {theme}: {wrong}" for wrong in violations(page, rules)]
    assert not problems, "\n".join(problems)
