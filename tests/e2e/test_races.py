"""Slow page requests while other actions happen on the page."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.chat.pictures import picture

# Streams that stay open when all is said.
LINGERING = """
const fetched = window.fetch;
window.fetch = async (...asked) => {
  const response = await fetched(...asked);
  const kind = response.headers.get("Content-Type") ?? "";
  if (!kind.startsWith("text/event-stream")) return response;
  const never = new TransformStream({ flush: () => new Promise(() => {}) });
  response.body.pipeTo(never.writable).catch(() => {});
  return new Response(never.readable, { headers: response.headers });
};
"""
# The import that was begun last, as a worker would.
RUN_IT = (
    "from chat.importers import jobs; from chat.models import Import;"
    " jobs.run_import(Import.objects.latest('pk').pk)"
)


@pytest.fixture
def hold_requests() -> Callable:
    """Keeps requests of a page waiting: each call of what `held(page, "**/edit/")` returns lets one
    go.
    """

    def hold(page: Page, address: str) -> Callable[[], None]:
        waiting: list[Route] = []
        page.route(address, lambda route: waiting.append(route))

        def let_go() -> None:
            while not waiting:
                page.wait_for_timeout(50)
            waiting.pop(0).continue_()

        return let_go

    return hold


def box(page: Page):
    return page.get_by_label("Message", exact=True)


def pick(page: Page, name: str, data: bytes = b"") -> None:
    added = {"name": name, "mimeType": "image/png", "buffer": data or picture()}
    page.get_by_label("Images").set_input_files([added])


def send(page: Page, text: str) -> None:
    box(page).fill(text)
    box(page).press("Enter")


def test_text_and_images_added_while_a_message_is_sent_stay(chat, server, say, hold_requests):
    let_go = hold_requests(chat, "**/messages/")
    server.model.say("At nine.")
    say(chat, "At what time?")
    box(chat).press_sequentially(" And where?")
    added = {"name": "plan.png", "mimeType": "image/png", "buffer": picture()}
    chat.get_by_label("Images").set_input_files([added])
    expect(chat.locator(".picture img")).to_have_count(1)
    let_go()
    expect(chat.locator(".turn").last).to_contain_text("At nine.")
    expect(chat.locator(".turn.person").last.locator("[data-message-text]")).to_have_text(
        "At what time?"
    )
    expect(box(chat)).to_have_value(" And where?")
    expect(chat.locator(".picture img")).to_have_count(1)


def test_an_image_added_while_another_is_uploaded_stays(chat, server, hold_requests):
    upload = hold_requests(chat, "**/images/")
    pictures = chat.locator(".picture")
    pick(chat, "first.png")
    send(chat, "Look.")
    pick(chat, "second.png")
    expect(pictures).to_have_count(2)
    server.model.say("I see.")
    upload()
    expect(chat.locator(".turn").last).to_contain_text("I see.")
    expect(chat.locator(".turn.person").last.locator("img")).to_have_count(1)
    upload()
    expect(pictures.locator("img")).to_have_count(1)
    expect(pictures).to_contain_text("second.png")


def test_a_message_whose_image_is_refused_is_not_sent_without_it(chat, hold_requests, open_page):
    upload = hold_requests(chat, "**/images/")
    pick(chat, "broken.png", b"no image")
    send(chat, "Look.")
    upload()
    expect(chat.locator(".picture.refused [data-refused]")).to_be_visible()
    expect(chat.get_by_role("button", name="Send")).to_be_enabled()
    expect(chat.locator(".turn")).to_have_count(2)
    expect(box(chat)).to_have_value("Look.")
    # The browser logs the response 400.
    assert len(open_page.complaints) == 1
    open_page.complaints.clear()


def test_a_double_click_saves_an_edit_once(chat):
    posts = []
    chat.on("request", lambda one: posts.append(one.url) if one.method == "POST" else None)
    turn = chat.locator(".turn.person").first
    turn.get_by_role("link", name="Edit", exact=True).click()
    turn.get_by_role("textbox").fill("Good evening")
    turn.get_by_role("button", name="Save").dblclick()
    expect(turn.get_by_role("textbox")).to_have_count(0)
    expect(turn.locator("[data-message-text]")).to_have_text("Good evening")
    assert len(posts) == 1


def test_a_lost_connection_before_the_message_appears_is_reported(chat):
    chat.route(
        "**/messages/",
        lambda route: route.fulfill(content_type="text/event-stream", body=": ping\n\n"),
    )
    send(chat, "At what time?")
    expect(chat.locator("[data-error]")).to_contain_text("Connection lost.")
    expect(box(chat)).to_have_value("At what time?")


def test_the_next_message_is_sent_while_the_last_ones_connection_lingers(chat, server, say):
    chat.add_init_script(LINGERING)
    chat.reload()
    for number, answer in ((3, "At nine."), (5, "In Vienna.")):
        server.model.say(answer)
        say(chat, "And?")
        expect(chat.locator(".turn").nth(number)).to_contain_text(answer)
        expect(chat.locator("[aria-busy]")).to_have_count(0)


def test_an_editor_opens_though_its_turn_was_brought_up_to_date_meanwhile(two, hold_requests):
    mine, theirs = two
    let_go = hold_requests(mine, "**/edit/?part=turn")
    mine.locator(".turn.person").hover()
    mine.locator(".turn.person").get_by_role("link", name="Edit").click()
    theirs.locator(".turn.person").hover()
    theirs.locator(".turn.person").get_by_label("React").click()
    theirs.locator(".turn.person").get_by_role("button", name="🎉").click()
    expect(mine.locator(".turn.person .chip")).to_be_visible()
    let_go()
    expect(mine.get_by_label("Your text")).to_have_value("Good morning")


def test_an_editor_that_was_asked_for_twice_keeps_what_is_written_in_it(chat, hold_requests):
    let_go = hold_requests(chat, "**/edit/?part=turn")
    chat.locator(".turn.person").hover()
    edit = chat.locator(".turn.person").get_by_role("link", name="Edit")
    edit.click()
    edit.click()
    let_go()
    chat.get_by_label("Your text").fill("When is the rehearsal?")
    with chat.expect_request_finished(lambda request: "/edit/" in request.url):
        let_go()
    chat.wait_for_timeout(300)
    expect(chat.get_by_label("Your text")).to_have_value("When is the rehearsal?")


def test_the_prompt_does_not_appear_after_the_chat_is_closed(two, server, hold_requests, open_page):
    mine, theirs = two
    routes: list = []
    theirs.route("**/*part=drawer", lambda route: routes.append((route, route.fetch())))
    theirs.get_by_role("link", name="Context").click()
    while not routes:
        theirs.wait_for_timeout(50)
    chat = theirs.url.split("/chats/")[1].split("/")[0]
    server.api("PATCH", f"sessions/{chat}/", {"visibility": "private"})
    expect(theirs.locator(".turn")).to_have_count(0)
    [(route, response)] = routes
    with theirs.expect_request_finished(lambda request: "part=drawer" in request.url):
        route.fulfill(response=response)
    theirs.wait_for_timeout(300)
    expect(theirs.locator("[data-drawer]")).to_be_hidden()
    expect(theirs.locator("[data-drawer]")).to_be_empty()
    assert "404" in open_page.complaints.pop()


def test_escape_closes_the_drawer_and_stops_no_reply(chat, server, say):
    words = server.model.dictate("At nine, sharp.")
    say(chat, "At what time?")
    words.release()
    expect(chat.locator("[aria-busy] [data-message-text]")).to_have_text("At")
    drawer, close = chat.locator("[data-drawer]"), chat.locator("[data-drawer-close]")
    chat.get_by_role("link", name="Context").click()
    expect(close).to_be_focused()
    chat.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    words.release()
    expect(chat.locator("[aria-busy] [data-message-text]")).to_have_text("At nine,")

    # When the reply is over, it is fetched anew.
    chat.get_by_role("link", name="Context").click()
    expect(close).to_be_focused()
    chat.evaluate("document.querySelector('[data-drawer-close]').id = 'old'")
    words.release(10)
    expect(chat.locator("#old")).to_have_count(0)
    expect(close).to_be_focused()
    chat.keyboard.press("Escape")
    expect(drawer).to_be_hidden()


def test_a_button_that_is_pressed_twice_gets_its_name_back(open_page, sign_in, begin, say, server):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    sign_in(page)
    begin(page)
    server.model.say("Hello.")
    say(page, "Good morning")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    reply = page.locator(".turn").nth(1)
    reply.hover()
    page.clock.install()
    reply.get_by_role("button", name="Copy").click()
    reply.get_by_role("button", name="Copied").click()
    page.clock.run_for(5_000)
    expect(reply.locator("[data-copy]")).to_have_text("Copy")
    assert page.evaluate("navigator.clipboard.readText()") == "Hello."


def test_reasons_stay_open_while_the_list_of_imports_is_renewed(page, server, begin, tmp_path):
    begin(page)
    file = tmp_path / "talk.jsonl"
    line = {"session": "s", "role": "user", "content": "Hi", "created_at": "2026-03-01T09:00:00Z"}
    nobody = line | {"role": "nobody"}
    file.write_text(f"{json.dumps(line)}\n{json.dumps(nobody)}\n")
    page.get_by_role("link", name="Imports").click()
    for number in (1, 2):
        page.get_by_label("File").set_input_files(file)
        page.get_by_role("button", name="Import", exact=True).click()
        expect(page.locator("[data-import]")).to_have_count(number)
        if number == 1:
            server.manage("shell", "-c", RUN_IT)
    page.get_by_text("Rejected items and reasons").click()
    reason = page.locator("details li").first
    expect(reason).to_be_visible()
    page.locator("[data-imports]").evaluate(
        "list => { list.dataset.old = ''; list.firstElementChild.id = 'old'; }"
    )
    expect(page.locator("#old")).to_have_count(0)
    expect(reason).to_be_visible()
