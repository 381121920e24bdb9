"""Times in the zone of who reads, with the project's beside them."""

from playwright.sync_api import expect


def test_a_reader_elsewhere_sees_their_own_times(open_page, sign_in, begin, say, server):
    near, far = open_page(timezone_id="UTC"), open_page(timezone_id="Asia/Kathmandu")
    sign_in(near)
    begin(near)
    server.model.say("Hello.")
    say(near, "Good morning")
    expect(near.locator(".turn").nth(1)).to_contain_text("Hello.")
    expect(near.locator("[aria-busy]")).to_have_count(0)
    sign_in(far)
    far.goto(near.url)
    here, there = (one.locator(".turn time").first for one in (near, far))
    utc = here.inner_text()
    assert here.get_attribute("title") is None
    expect(there).to_have_attribute("title", f"{utc} +00:00")
    shown = far.evaluate(
        """(iso) => new Date(iso).toLocaleTimeString("en", { timeStyle: "short" })""",
        there.get_attribute("datetime"),
    )
    expect(there).to_contain_text(shown)
