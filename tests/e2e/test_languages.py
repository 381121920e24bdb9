"""A German browser, from the sign-in to a reply, and back to English."""

from playwright.sync_api import expect

from tests.server import PASSWORD


def test_a_german_reads_german_and_changes_to_english(open_page, server):
    page = open_page(locale="de-DE")
    page.goto("/")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.get_by_label("Benutzername").fill("admin")
    page.get_by_label("Passwort").fill(PASSWORD)
    page.get_by_role("button", name="Anmelden").click()
    page.goto("/?all")
    page.get_by_label("Name").fill("Abrechnung")
    page.get_by_role("button", name="Projekt anlegen").click()

    server.model.say("Am Donnerstag um neun.", delay=0.05)
    page.wait_for_load_state()
    page.get_by_label("Nachricht", exact=True).fill("Wann ist die Umstellung?")
    page.get_by_label("Nachricht", exact=True).press("Enter")
    reply = page.locator(".turn:not(.person)").last
    expect(reply).to_contain_text("Assistent")
    expect(reply).to_contain_text("um neun.", timeout=20_000)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    # What came by the stream of events is German, too.
    expect(reply).to_contain_text("Neu generieren")

    page.locator("button.account").click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator(".turn:not(.person)").last).to_contain_text("Assistant")
    page.locator("button.account").click()
    expect(page.get_by_role("button", name="English")).to_have_attribute("aria-current", "true")
