"""Texts that would run a script or ask another server for something, wherever texts appear."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.chat.pictures import picture
from tests.hostile import page_visits
from tests.hostile.payloads import PAYLOADS
from tests.hostile.script_monitor import Witness
from tests.hostile.stream_cuts import CUTS, cut
from tests.scripted import Answer

# Of the payloads, those that a person or a model says here.
SAMPLED_PAYLOADS = PAYLOADS[::14]


@pytest.fixture(scope="module")
def hostile(running) -> Iterator[dict]:
    """A project whose every text is hostile, and who looks at it."""
    world = page_visits.create_world(running, step=7)
    yield world
    page_visits.removed(running, world)


@pytest.fixture
def watched(open_page, server, hostile) -> Iterator[tuple[Page, Witness]]:
    page = open_page()
    witness = Witness(page.context, server.url)
    page_visits.enter(page, hostile, server.url)
    yield page, witness
    assert witness.wrong == []


@pytest.fixture
def unguarded(open_page, server, sign_in, begin) -> Iterator[tuple[Page, Witness]]:
    """A new project, in a browser that keeps to no policy: what got into a page would run."""
    page = open_page(bypass_csp=True)
    sign_in(page)
    begin(page)
    witness = Witness(page.context, server.url)
    yield page, witness
    assert witness.wrong == []


def test_no_page_obeys_a_text(watched, hostile, open_page):
    page, witness = watched
    page_visits.look_at(page, witness, page_visits.pages(hostile))
    page_visits.look_at(page, witness, page_visits.echo_paths(hostile, payload=0))
    # Of what is not there, and of what cannot be read.
    open_page.complaints[:] = [
        complaint for complaint in open_page.complaints if "status of 40" not in complaint
    ]
    assert len({payload for _, payload in witness.payloads}) > 300
    assert len({column for column, _ in witness.payloads}) > 20


def test_no_list_of_the_admin_obeys_a_text(watched, hostile):
    page, witness = watched
    page_visits.look_at(page, witness, page_visits.admin_lists(page_visits.PLANTED_NAMES))
    assert len({column for column, _ in witness.payloads}) > 12


def test_no_page_runs_hostile_text_of_a_chat(unguarded, server, say):
    page, witness = unguarded
    answer = "\n\n".join(SAMPLED_PAYLOADS)
    parts = cut(SAMPLED_PAYLOADS, list(CUTS))
    server.model.queue(Answer(answer, parts=parts, delay=0.001))
    say(page, f"{answer}\n\nand no more")
    expect(page.locator(".turn").first).to_contain_text("and no more")
    expect(page.locator(".turn").nth(1)).to_contain_text("alert(1)")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    witness.look(page)
    page.reload()
    witness.look(page)


def test_no_name_of_a_file_is_obeyed(unguarded, server, say, open_page):
    page, witness = unguarded
    say(page, "Hello")
    expect(page.locator(".turn").nth(1)).to_contain_text("Scripted.")
    page.locator("[data-picker][data-ready]").wait_for()
    # What stands before a slash is a folder's name.
    names = [payload.replace("\n", " ").replace("/", "|") for payload in SAMPLED_PAYLOADS[:8]]
    files = [{"name": name, "mimeType": "image/png", "buffer": picture()} for name in names]
    refused = {"name": f"{names[0]}.svg", "mimeType": "image/svg+xml", "buffer": b"<svg/>"}
    page.locator("[data-picker] input").set_input_files([*files, refused])
    expect(page.locator("[data-pictures] img")).to_have_count(len(files))
    # A message that waits for its images is not sent if one of them is refused.
    expect(page.locator("[data-pictures] .refused")).to_have_count(1)
    witness.look(page)
    say(page, "Look")
    expect(page.locator(".turn img")).to_have_count(len(files))
    witness.look(page)
    open_page.complaints.clear()


def test_an_image_opened_by_itself_has_no_part_in_the_session(page, begin, say, open_page):
    begin(page)
    say(page, "Hello")
    page.locator("[data-picker][data-ready]").wait_for()
    file = {"name": "plan.png", "mimeType": "image/png", "buffer": picture()}
    page.locator("[data-picker] input").set_input_files([file])
    expect(page.locator("[data-pictures] img")).to_have_count(1)
    say(page, "Look")
    page.goto(page.locator(".turn img").get_attribute("src"))
    assert page.evaluate("self.origin") == "null"
    # The browser's own page around it has styles, which the policy refuses as well.
    refused = [
        complaint for complaint in open_page.complaints if "Applying inline style" in complaint
    ]
    assert refused == open_page.complaints
    open_page.complaints.clear()
