"""Long words, long names and text from right to left leave the page in order."""

from uuid import uuid4

from playwright.sync_api import expect

from tests.e2e.conftest import created, talked
from tests.e2e.test_every_page import SMALLEST, stretched
from tests.membership import join
from tests.torture.clients import Api

LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützen"
FERRIES = "مشروع العبارات: كيف نحسب الأسعار في فصل الشتاء"


def test_a_long_name_of_a_project_fits_the_smallest_telephone(page, server):
    project = server.api("POST", "projects/", {"name": f"{LONG} {uuid4().hex[:6]}"})
    models = f"/models/projects/{project['slug']}/"
    for path in ("/", f"/projects/{project['slug']}/settings/", models):
        page.goto(path)
        assert stretched(page, SMALLEST) == []


def test_a_long_word_of_a_fact_leaves_room_for_the_other_columns(page, server):
    slug = created(server)["slug"]
    fact = {"subject": LONG * 2, "predicate": "is", "object": LONG * 5}
    server.api("POST", f"projects/{slug}/facts/", fact)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/projects/{slug}/memory/facts/")
    table = page.locator(".facts-table")
    assert table.evaluate("(table) => table.scrollWidth <= table.parentNode.clientWidth")


def test_a_title_from_right_to_left_shows_its_beginning(page, server):
    path = talked(server, created(server), FERRIES, "On Monday.")
    server.api("PATCH", f"sessions/{path.split('/')[-2]}/", {"title": FERRIES})
    page.goto(path)
    for title in (page.get_by_role("heading", level=1), page.locator(".side .chats .item").first):
        expect(title).to_have_css("direction", "rtl")


def test_a_long_name_of_a_project_leaves_room_in_lists_of_the_admin(page, server):
    project = server.api("POST", "projects/", {"name": f"{LONG * 2} {uuid4().hex[:6]}"})
    server.api("POST", f"projects/{project['slug']}/sessions/", {"title": LONG * 4})
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/admin/chat/session/")
    table = page.locator("#result_list")
    assert table.evaluate("(table) => table.scrollWidth <= table.parentNode.clientWidth")


def test_the_german_sidebar_shows_all_names_whole(page, open_page, sign_in, server):
    slug = created(server)["slug"]
    join(Api(server.url, server.token), slug, "edgar", server.edgars_token, role="viewer")
    sign_in(open_page(), "edgar")
    for name in ("admin", "edgar"):
        german = open_page(locale="de-DE", viewport={"width": 1440, "height": 900})
        sign_in(german, name)
        german.goto(f"/projects/{slug}/")
        names = german.locator(".side .pages .item span")
        expect(names.filter(has_text="Einstellungen")).to_be_visible()
        assert not [
            text
            for text in names.all()
            if text.evaluate("(text) => text.scrollWidth > text.clientWidth")
        ]


def test_a_long_message_is_folded_until_it_is_opened(page, server):
    page.goto(talked(server, created(server), "A line of a log.\n" * 200, "I see."))
    message, answer = page.locator(".turn > .message-text").all()
    expect(answer).to_have_text("I see.")
    folded = message.bounding_box()["height"]
    page.get_by_role("button", name="Show all").click()
    assert message.bounding_box()["height"] > 5 * folded
    page.get_by_role("button", name="Show less").click()
    assert message.bounding_box()["height"] == folded
    expect(page.get_by_role("button", name="Show all")).to_be_in_viewport()
