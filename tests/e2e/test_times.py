"""Times in the zone of who reads, with the project's beside them."""

import re

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
    near_time, far_time = (item.locator(".turn time").first for item in (near, far))
    utc = near_time.inner_text()
    assert near_time.get_attribute("title") is None
    expect(far_time).to_have_attribute("title", f"{utc} +00:00")
    local_time = far.evaluate(
        """(iso) => new Date(iso).toLocaleTimeString("en", { timeStyle: "short" })""",
        far_time.get_attribute("datetime"),
    )
    expect(far_time).to_contain_text(local_time)


def test_account_pages_show_times_of_the_reader_too(open_page, sign_in):
    page = open_page(timezone_id="America/St_Johns")
    sign_in(page)
    page.goto("/accounts/sessions/")
    times = page.locator("main time")
    expect(times.first).to_have_attribute("title", re.compile(r"\d\d:\d\d \+00:00$"))
    local_time = page.evaluate(
        """(iso) => new Date(iso).toLocaleTimeString("en", { timeStyle: "short" })""",
        times.first.get_attribute("datetime"),
    )
    expect(times.first).to_contain_text(local_time)
    expect(page.locator("main")).to_contain_text("signed in")
