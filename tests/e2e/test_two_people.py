"""Two people in one shared chat, each in a browser of their own."""

import re

from playwright.sync_api import expect

WORDS = "On **Thursday** at nine, when the exports have run and the new primary is warm."
MANY = 100


def test_somebody_is_invited_accepts_and_finds_the_chat(
    page, server, begin, say, open_page, sign_in
):
    name = begin(page)
    server.model.say("Hello.")
    say(page, "Good morning")
    expect(page.locator(".turn").nth(1)).to_contain_text("Hello.")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Members").click()
    page.get_by_label("Username").fill("edgar")
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.get_by_text("edgar was invited.")).to_be_visible()
    expect(page.get_by_label("Role of edgar")).to_have_count(0)

    theirs = open_page()
    sign_in(theirs, "edgar")
    theirs.goto("/?all")
    theirs.get_by_role("button", name=f"Accept: {name}").click()
    theirs.get_by_role("link", name="Good morning", exact=True).click()
    expect(theirs.locator(".turn")).to_have_count(2)


def test_an_update_that_fails_is_tried_again(two, server, say, open_page):
    mine, theirs = two
    theirs.route("**/*part=turns*", lambda route: route.fulfill(status=503), times=1)
    server.model.say("On Thursday.")
    say(mine, "When is the cutover?")
    expect(theirs.locator(".turn").last).to_contain_text("On Thursday.")
    expect(theirs.locator("[data-error]")).to_be_hidden()
    assert "503" in open_page.complaints.pop()


def test_two_people_see_each_others_messages_and_the_streaming_reply(two, server, say):
    mine, theirs = two
    words = server.model.dictate(WORDS)
    say(mine, "When is the cutover?")
    turn = theirs.locator(".turn.person").last
    expect(turn).to_contain_text("When is the cutover?")
    expect(turn.locator("header b")).to_have_text("admin")
    # Some words are there while others are still to come.
    words.release(2)
    growing = theirs.locator(".turn[aria-busy] [data-message-text]")
    expect(growing).to_have_text("On **Thursday**")
    words.release(MANY)
    expect(theirs.locator(".turn").last.locator("strong")).to_have_text("Thursday")
    expect(theirs.locator(".turn").last).to_contain_text("warm.")

    server.model.say("Edgar, at nine.")
    say(theirs, "At what time?")
    for page in two:
        expect(page.locator(".turn")).to_have_count(6)
        expect(page.locator(".turn").last).to_contain_text("Edgar, at nine.")
    expect(mine.locator(".turn.person header b").last).to_have_text("edgar")
    expect(theirs.locator(".turn.person header b").last).to_have_text("You")


def test_news_that_come_late_take_nothing_away(two, server, say):
    mine, theirs = two
    late = []

    def hold_the_first(route):
        if late:
            route.continue_()
        else:
            late.append((route, route.fetch()))

    mine.route("**/*part=turns*", hold_the_first)
    server.model.say("Nine.")
    say(theirs, "When?")
    expect(theirs.locator(".turn").last).to_contain_text("Nine.")
    while not late:
        mine.wait_for_timeout(50)
    words = server.model.dictate(WORDS)
    say(mine, "On which day?")
    words.release(2)
    growing = mine.locator(".turn[aria-busy] [data-message-text]")
    expect(growing).to_have_text("On **Thursday**")
    [(route, response)] = late
    with mine.expect_request_finished(lambda request: "part=turns" in request.url):
        route.fulfill(response=response)
    words.release(2)
    expect(growing).to_have_text("On **Thursday** at nine,")
    words.release(MANY)
    expect(mine.locator(".turn").last).to_contain_text("warm.")
    expect(mine.locator(".turn")).to_have_count(6)


def test_an_open_editor_stays_when_the_other_changes_the_chat(two, server, say):
    mine, theirs = two
    mine.locator(".turn.person").hover()
    mine.locator(".turn.person").get_by_role("link", name="Edit").click()
    mine.get_by_label("Your text").fill("Good evening")
    mine.get_by_label("Your text").evaluate("box => box.setSelectionRange(4, 4)")
    server.model.say("Nine.")
    say(theirs, "When?")
    expect(mine.locator(".turn")).to_have_count(4)
    expect(mine.get_by_label("Your text")).to_have_value("Good evening")
    expect(mine.get_by_label("Your text")).to_be_focused()
    assert mine.get_by_label("Your text").evaluate("box => box.selectionStart") == 4
    mine.get_by_role("button", name="Save").click()
    expect(theirs.locator(".turn.person").first).to_contain_text("Good evening")


def test_an_overtaken_editor_sees_both_texts(two, open_page):
    mine, theirs = two
    for page, text in ((mine, "Mine."), (theirs, "Theirs.")):
        # An assistant's words may be changed by any of them.
        page.locator(".turn").nth(1).hover()
        page.locator(".turn").nth(1).get_by_label("More").click()
        page.locator(".turn").nth(1).get_by_role("link", name="Edit").click()
        page.get_by_label("Your text").fill(text)
    theirs.get_by_role("button", name="Save").click()
    expect(theirs.locator(".turn").nth(1)).to_contain_text("Theirs.")
    mine.get_by_role("button", name="Save").click()
    expect(mine.get_by_text("The new version")).to_be_visible()
    expect(mine.locator(".inset-text")).to_have_text("Theirs.")
    expect(mine.get_by_label("Your text")).to_have_value("Mine.")
    # A browser notes each status of that kind.
    assert "412" in open_page.complaints.pop()
    mine.get_by_role("button", name="Save").click()
    expect(mine.get_by_label("Your text")).to_have_count(0)
    for page in two:
        expect(page.locator(".turn").nth(1).locator("[data-message-text]")).to_have_text("Mine.")


def test_reactions_and_deletions_appear_for_the_other(two):
    mine, theirs = two
    reply = mine.locator(".turn").nth(1)
    reply.hover()
    reply.get_by_label("React").click()
    reply.get_by_role("button", name="🎉").click()
    expect(theirs.locator(".turn").nth(1).locator(".chip")).to_have_text(re.compile(r"🎉\s*1"))
    theirs.locator(".turn").nth(1).locator(".chip").click()
    expect(mine.locator(".turn").nth(1).locator(".chip")).to_have_text(re.compile(r"🎉\s*2"))
    mine.locator(".turn").nth(0).hover()
    mine.locator(".turn").nth(0).get_by_label("More").click()
    mine.locator(".turn").nth(0).get_by_role("link", name="Delete").click()
    mine.get_by_role("button", name="Delete message").click()
    for page in two:
        expect(page.locator(".turn").nth(0)).to_contain_text("Deleted")
        expect(page.locator(".turn").nth(0)).not_to_contain_text("Good morning")
