"""Lists with one search line: the filters are behind a button."""

from playwright.sync_api import Page, expect

SMALLEST = {"width": 320, "height": 568}


def test_filters_are_set_behind_a_button_and_removed_by_their_marks(page: Page, demo):
    page.goto(f"/projects/{demo}/memory/review/?state=live")
    rows = page.locator(".queue > li")
    all_rows = rows.count()
    layer = page.get_by_label("Layer")
    expect(layer).to_be_hidden()
    page.get_by_text("Filters", exact=True).press("Enter")
    expect(layer).to_be_visible()
    layer.press("Escape")
    expect(layer).to_be_hidden()
    expect(page.locator(".filter-menu summary")).to_be_focused()
    page.get_by_text("Filters", exact=True).press("Enter")
    layer.select_option("week")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Layer: Weeks")).to_be_visible()
    assert 0 < rows.count() < all_rows
    # The tabs and the search keep the filter.
    expect(page.get_by_role("link", name="In use")).to_have_attribute("aria-current", "page")
    page.get_by_role("searchbox", name="Search memories").fill("winter")
    page.get_by_role("searchbox", name="Search memories").press("Enter")
    expect(page.get_by_text("Layer: Weeks")).to_be_visible()
    page.get_by_role("link", name="Remove the filter “Layer”").click()
    expect(page.get_by_text("Layer: Weeks")).to_be_hidden()
    expect(page.get_by_role("searchbox", name="Search memories")).to_have_value("winter")


def test_open_filters_fit_the_smallest_telephone(page: Page, demo):
    page.set_viewport_size(SMALLEST)
    page.goto(f"/projects/{demo}/search/?q=wheelchair")
    page.get_by_text("Filters", exact=True).click()
    panel = page.locator(".panel").bounding_box()
    assert panel["x"] >= 0 and panel["x"] + panel["width"] <= SMALLEST["width"]
    page.get_by_label("Person").fill("Ines")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Person: Ines")).to_be_visible()
    assert page.evaluate("document.querySelector('.scroll').scrollWidth") <= SMALLEST["width"]


def test_a_long_list_is_searched(page, begin):
    begin(page)
    page.goto(f"{page.url.rstrip('/')}/settings/")
    search, zones = page.get_by_label("Search this list").first, page.get_by_label("Time zone")
    count = zones.locator("option").count()
    search.fill("vienn")
    expect(zones.locator("option")).to_have_text(["UTC", "Vienna"])
    search.press("Enter")
    expect(zones).to_have_value("Europe/Vienna")
    expect(zones.locator("option")).to_have_count(count)
    page.get_by_role("button", name="Save").first.click()
    expect(zones).to_have_value("Europe/Vienna")
