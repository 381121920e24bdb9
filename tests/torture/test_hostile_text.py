"""Every hostile text in every place where texts appear; tests/e2e has the short version."""

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import (  # noqa: F401  # the server, the browser and who sits before it
    begin,
    browser,
    open_page,
    running,
    say,
    server,
    sign_in,
    signed_in,
    started,
)
from tests.hostile import page_visits
from tests.hostile.payloads import PAYLOADS
from tests.hostile.script_monitor import Witness
from tests.hostile.stream_cuts import CUTS, cut
from tests.hostile.text_placement import label
from tests.hostile.world import ROWS
from tests.scripted import Answer
from tests.torture.conftest import LONG

# Seconds: 40 minutes where nothing else runs.
pytestmark = [
    pytest.mark.skipif(not LONG, reason="takes an hour"),
    pytest.mark.timeout(7_200),
]

# In one answer.
AT_ONCE = 60


def test_no_page_obeys_any_text(running, server, open_page, tally):  # noqa: F811
    world = page_visits.create_world(running, step=1)
    seen_payloads: set[tuple[int, int]] = set()
    for number, first in enumerate(range(0, len(PAYLOADS), ROWS)):
        page_visits.planted(running, world, first, step=1)
        # Every other time in a browser that keeps to no policy: what got into a page would run.
        page = open_page(bypass_csp=bool(number % 2))
        witness = Witness(page.context, server.url)
        page_visits.enter(page, world, server.url)
        opened = page_visits.look_at(page, witness, page_visits.pages(world))
        opened += page_visits.look_at(page, witness, page_visits.more_pages(world))
        opened += page_visits.look_at(page, witness, page_visits.echo_paths(world, first))
        opened += page_visits.look_at(page, witness, page_visits.admin(page))
        assert witness.wrong == []
        seen_payloads |= witness.payloads
        tally("pages looked at", opened)
        page.context.close()
        # Of what is not there, and of what cannot be read.
        open_page.complaints[:] = [
            complaint for complaint in open_page.complaints if "status of 40" not in complaint
        ]
    page_visits.removed(running, world)
    by_column: dict[int, set[int]] = {}
    for column, payload in seen_payloads:
        by_column.setdefault(column, set()).add(payload)
    for column, payloads in sorted(by_column.items()):
        tally(f"texts shown as {label(column)}", len(payloads))
    whole = [column for column, payloads in by_column.items() if len(payloads) == len(PAYLOADS)]
    assert len(whole) > 12


@pytest.mark.parametrize("way", CUTS)
def test_no_chat_obeys_any_text_wherever_it_is_cut(
    open_page,  # noqa: F811
    server,  # noqa: F811
    sign_in,  # noqa: F811
    begin,  # noqa: F811
    say,  # noqa: F811
    tally,
    way,
):
    page = open_page(bypass_csp=True)
    sign_in(page)
    begin(page)
    witness = Witness(page.context, server.url)
    for first in range(0, len(PAYLOADS), AT_ONCE):
        some = PAYLOADS[first : first + AT_ONCE]
        parts = cut(some, [way])
        server.model.queue(Answer("".join(parts), parts=parts, delay=0.001))
        say(page, "\n\n".join(some))
        expect(page.locator(".turn").nth(2 * (first // AT_ONCE) + 1)).to_be_visible()
        expect(page.locator("[aria-busy]")).to_have_count(0, timeout=120_000)
        witness.look(page)
        tally("pieces", len(parts))
    assert witness.wrong == []
    tally(f"texts, cut {way}", len(PAYLOADS))
