"""Maths, lists, tables and code of an answer, in either theme, wide and narrow."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import created, talked
from tests.e2e.test_every_page import AXE, violations

ANSWER = r"""So \(a^2\) and

\[
\begin{aligned}
x &= 1 \\
- y &= 2
\end{aligned}
\]

- [x] **Send** the refund, see https://example.org/refunds.
- [ ] Close[^1]

| Ship | Notes |
|---|--:|
| MS-Aurelia-of-the-Northern-Line | deck 2<br>deck-3-and-a-word-that-no-line-could-break |

```python
def refund(booking: str, amount: int, reason: str = "double payment by the passenger") -> int: ...
```

```mermaid
graph TD
```

[^1]: After May.
"""
COPIED = "navigator.clipboard.readText()"
FORMATTED = """navigator.clipboard.read()
    .then(([item]) => item.getType("text/html")).then((blob) => blob.text())"""


@pytest.fixture(params=[("light", 1280), ("light", 390), ("dark", 1280), ("dark", 390)])
def answer(request, open_page, sign_in, server) -> Page:
    theme, width = request.param
    page = open_page(
        color_scheme=theme,
        viewport={"width": width, "height": 900},
        bypass_csp=True,
        permissions=["clipboard-read", "clipboard-write"],
    )
    page.add_init_script(AXE)
    sign_in(page)
    page.goto(talked(server, created(server), "Show everything", ANSWER))
    expect(page.locator(".code")).to_have_count(2)
    return page


def test_an_answer_is_set_and_shuts_nobody_out(answer):
    reply = answer.locator(".turn").nth(1)
    expect(reply.locator("math")).to_have_count(2)
    expect(reply.locator(".task").first).to_contain_text("☑ Send")
    expect(reply.get_by_role("link", name="https://example.org/refunds")).to_be_visible()
    expect(reply.locator("td br")).to_have_count(1)
    expect(reply.locator(".footnote")).to_contain_text("1 After May.")
    expect(reply.locator(".code-bar > span")).to_have_text(["python", "mermaid"])
    # What scrolls can be focused, and nothing else can.
    code = reply.locator("pre")
    expect(code.first).to_have_attribute("tabindex", "0")
    expect(code.nth(1)).not_to_have_attribute("tabindex", "0")
    assert violations(answer) == []


def test_code_is_wrapped_and_copied(chat, server, say):
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    server.model.say(ANSWER)
    say(chat, "Show everything")
    reply = chat.locator(".turn").nth(3)
    # The finished answer, which replaces the one that streams. Before it begins, nothing is busy.
    expect(chat.locator(".turn")).to_have_count(4)
    expect(chat.locator("[aria-busy]")).to_have_count(0)
    code = reply.locator(".code").first
    code.get_by_role("button", name="Wrap lines").click()
    expect(code.get_by_role("button", name="Wrap lines")).to_have_attribute("aria-pressed", "true")
    expect(code.locator("pre")).not_to_have_attribute("tabindex", "0")
    code.get_by_role("button", name="Copy").click()
    expect(code.get_by_role("button", name="Copied")).to_be_visible()
    assert str(chat.evaluate(COPIED)).startswith("def refund(booking: str")
    actions = reply.locator(".actions")
    actions.get_by_role("button", name="Copy", exact=True).click()
    expect(actions.get_by_role("button", name="Copied")).to_be_visible()
    formatted = chat.evaluate(FORMATTED)
    assert "<table" in formatted
    for text in (formatted, chat.evaluate(COPIED)):
        assert "refund" in text
        assert "Wrap lines" not in text
