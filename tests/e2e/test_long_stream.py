"""A long answer that comes fast: every word is there, and the page stays quick."""

import os

import pytest
from playwright.sync_api import expect

TOKENS = 4_000 if os.environ.get("STRATA_TORTURE") else 1_000
A_SECOND = 200
# Paragraphs, a list and code, as models write.
PARAGRAPH = 40
WATCH = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ type: "longtask" });
}"""


def make_tokens() -> list[str]:
    """The tokens, one word each."""
    tokens = []
    for number in range(TOKENS):
        end = "\n\n" if number % PARAGRAPH == PARAGRAPH - 1 else " "
        mark = "- " if number % (5 * PARAGRAPH) == 0 else ""
        tokens.append(f"{mark}w{number}{end}")
    return tokens


@pytest.mark.timeout(180)
def test_a_long_answer_comes_whole_and_the_page_stays_quick(page, server, begin, say):
    begin(page)
    server.model.say("Ready.")
    say(page, "Good morning")
    expect(page.locator(".turn").nth(1)).to_contain_text("Ready.")
    page.evaluate(WATCH)
    session = page.context.new_cdp_session(page)
    server.model.say("".join(make_tokens()), delay=1 / A_SECOND)
    say(page, "Tell me everything")
    tail = page.locator(".turn").nth(3)
    # While it comes, what is whole is set already, and nothing is missing before the last word.
    expect(tail.locator("[data-blocks] ul")).not_to_have_count(0, timeout=60_000)
    heap = _heap(session)
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=120_000)
    words = tail.locator("[data-message-text]").inner_text().split()
    assert [word for word in words if word not in ("Wrap", "lines", "Copy")] == [
        f"w{n}" for n in range(TOKENS)
    ]
    longest, more = page.evaluate("window.longest"), _heap(session) - heap
    print(f"longest task {longest:.0f} ms, {more / 1e6:+.1f} MB after the stream")
    # Aimed at: 100 ms. Where other work runs too, a task is longer by what it had to wait.
    assert longest < 500 * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert more < 5_000_000


def _heap(session) -> int:
    """Bytes that the page's scripts hold, after what is of no use is gone."""
    session.send("HeapProfiler.collectGarbage")
    return session.send("Runtime.getHeapUsage")["usedSize"]
