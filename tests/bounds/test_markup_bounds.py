"""Markdown and code blocks are rendered in linear time, whatever their text is.

Markdown first: a text of up to 500,000 characters, nested, unfinished, wide. Then each lexer that
is offered for code, with the same rule as the patterns of test_patterns.py.
"""

import math
import re
import time
from re import _parser

import pytest
from markdown_it.token import Token
from pygments.lexers import get_lexer_by_name
from pygments.lexers.shell import BashLexer

from chat import markdown_budgets
from chat.markdown_budgets import HtmlCache
from chat.streaming import markdown_blocks
from chat.streaming.markdown_blocks import MAX_BLOCK_CHARS, BlockSplitter
from chat.templatetags import markup
from tests.bounds.test_patterns import MAX_GROWTH, UNITS, literals

MESSAGE_CHARS = 500_000
# A shared machine counts the time of a process up to three times.
MAX_MESSAGE_SECONDS = 3
MIN_SECONDS = 0.015
SHORT_CODE_CHARS = 300
SHORT_SECONDS = 0.003
# 0.1 s is the slowest measured: C# with empty lines.
MAX_CHUNK_SECONDS = 0.3


def seconds(function, *arguments) -> float:
    began = time.process_time()
    function(*arguments)
    return time.process_time() - began


def filled(first: str, unit: str, size: int) -> str:
    return (first + unit * (size // len(unit)))[:size]


BLOCKS = [
    *("> ", "> > a\n", "> a\n\n", "> ```\n", "> - ", "- - ", "- a\n", "- a\n  ", "1) a\n", "1.\n"),
    *("# a\n", "===\na\n", "---\n", "    a\n", "```\n", "~~~\n", "a  \n", "\n\n", " \n", "\t"),
    *(
        "| a |\n",
        "| a |\n|-|\n",
        "a|a|\n-|-|\n",
        "|\n-\n",
        "[a]: b\n",
        "[a]: <b",
        "$$\n",
        "$$a$$\n",
        "\\[\n",
        "\\[a\n",
        "$$a\n\n",
        "[^1]: a\n",
        "[^1]: a\n\n",
        "- [ ] a\n",
    ),
]
INLINE = [
    *(
        "*a ",
        "**a",
        "**a**",
        "*_",
        "_a",
        "~~a ",
        "`a",
        "``a ",
        "[",
        "[a](",
        "[[]",
        "![",
        "[`",
        "[*",
    ),
    *(
        "[a](b)",
        "[a][b]",
        "](",
        "<a",
        "<http://",
        "<!--",
        "<?",
        "<![CDATA[",
        "&a;",
        "&#x",
        "\\",
        "a\\",
    ),
    *(
        "$a",
        "$a$ ",
        "\\$",
        "$\\frac{",
        "$^$",
        "$\\sqrt{x}$ ",
        "http://a ",
        "http://a)",
        "http://",
        "www.",
        "\\(a",
        "\\(a\\) ",
        "\\[_",
        "[^1]",
        "é",
        "漢",
        "\x00",
        "(",
        '"',
    ),
]
TABLE = "|a" * 250 + "\n" + "|-" * 250 + "\n" + "a\n" * 250 + "\n"


@pytest.mark.parametrize("size", [markup.MAX_MARKDOWN_CHARS, MESSAGE_CHARS])
@pytest.mark.parametrize(
    ("first", "unit"),
    [
        *(("", unit) for unit in BLOCKS + INLINE),
        ("> " * 500, "a\n"),
        ("- " * 500, "a\n"),
        ("", TABLE),
        ("", TABLE.replace("\n\n", "\n")),
        ("|a" * 250 + "\n" + "|-" * 250 + "\n", "a\n"),
        ("|a|\n|-|\n|", "<br>"),
        ("http://a", ")"),
        ("http://a", "*"),
        ("", "```python\n" + " \n" * 400 + "```\n"),
        ("```python\n", " \n"),
        ("$$\n", "\\frac"),
        ("", "$" + "{" * 900 + "$ "),
        ("", "$" + "\\begin{matrix}" * 100 + "$ "),
        ("", "$" + "a_" * 900 + "$ "),
        ("", "$" + "\\left(" * 300 + "$ "),
    ],
)
def test_a_message_of_any_length_is_rendered_within_seconds(first, unit, size):
    text = filled(first, unit, size)
    # A shared machine may slow some of the runs.
    assert any(seconds(markup._render, text) < MAX_MESSAGE_SECONDS for _ in range(3))


@pytest.mark.parametrize("unit", [*BLOCKS, *INLINE, TABLE])
def test_a_growing_reply_is_parsed_three_times_at_most(unit, monkeypatch):
    """Counted in characters: a reply that grows would be parsed a hundred times."""
    text = filled("", unit, 50_000)
    parse, parsed = markdown_blocks._parser.parse, 0

    def count(source: str) -> list[Token]:
        nonlocal parsed
        parsed += len(source)
        return parse(source)

    monkeypatch.setattr(markdown_blocks._parser, "parse", count)
    splitter = BlockSplitter()
    for start in range(0, len(text), 500):
        splitter.add(text[start : start + 500])
    assert parsed <= 3 * len(text)


@pytest.mark.parametrize("unit", [*BLOCKS, *INLINE, TABLE])
def test_the_longest_open_block_is_parsed_within_seconds(unit):
    text = filled("", unit, MAX_BLOCK_CHARS)
    assert seconds(markdown_blocks._parser.parse, text) < MAX_MESSAGE_SECONDS / 2


def own_literals(name: str) -> list[str]:
    """Return the literals of a lexer's rules that are no words."""
    lexer = get_lexer_by_name(name)
    matches: set[str] = set()
    for rules in getattr(lexer, "_tokens", {}).values():
        for rule in rules:
            pattern = getattr(rule[0], "__self__", None)
            if isinstance(pattern, re.Pattern):
                matches.update(
                    literals(_parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE))
                )
    return sorted(
        (text for text in matches if not text.isalnum()), key=lambda text: (len(text), text)
    )


# What makes a lexer call another.
OPENINGS = {
    "console": "$ ",
    "docker": "RUN ",
    "html": "<script>",
    "makefile": "a:\n\t",
    "markdown": "```bash\n",
    "php": "<?php ",
    "pycon": ">>> ",
    "xml": "<a b='",
}


def growth_of_long_text(name: str, first: str, unit: str) -> float:
    """Return by what factor eight chunks take longer than four: the first ones may be quicker.

    Each is the quickest of up to 25 in turns, until that is little, because a shared machine slows
    down for a while. The four chunks are highlighted two times in a row, so that both take about as
    long and are slowed alike.
    """
    once, twice = (filled(first, unit, count * markup.LEXER_CHUNK_CHARS) for count in (4, 8))

    def two_times() -> None:
        markup.highlight(once, name)
        markup.highlight(once, name)

    longer = shorter = growth = math.inf
    for _ in range(25):
        longer = min(longer, seconds(markup.highlight, twice, name))
        shorter = min(shorter, seconds(two_times))
        growth = 2 * longer / shorter
        if growth <= MAX_GROWTH:
            break
    return growth


@pytest.mark.parametrize("name", markup.LEXERS)
def test_a_lexer_takes_linear_time(name):
    own = own_literals(name)
    opening = OPENINGS.get(name, "")
    cases = [
        *((opening, unit) for unit in dict.fromkeys([*UNITS, *own[:20]])),
        *((opening + first, unit) for first in own[:8] for unit in (" ", "a", "\\")),
        *((opening, first + unit) for first in own[:8] for unit in ("\n", "a ")),
        (opening + "$'", "\\"),
    ]
    # Exponential time shows in a short text, and would not end in a longer one.
    for first, unit in cases:
        assert seconds(markup.highlight, filled(first, unit, 60), name) < MAX_CHUNK_SECONDS
    chunk_seconds = {}
    for first, unit in cases:
        # Even in cubic time, a whole chunk would take less than half of MAX_CHUNK_SECONDS.
        if seconds(markup.highlight, filled(first, unit, SHORT_CODE_CHARS), name) < SHORT_SECONDS:
            continue
        chunk = filled(first, unit, markup.LEXER_CHUNK_CHARS)
        # A shared machine may slow some of the runs.
        rounds = (seconds(markup.highlight, chunk, name) for _ in range(6))
        taken = next((taken for taken in rounds if taken < MAX_CHUNK_SECONDS), math.inf)
        chunk_seconds[first, unit] = taken
    slow = [case for case, taken in chunk_seconds.items() if taken == math.inf]
    assert not slow
    # Each chunk is highlighted by itself, so what is true of the slowest is true of all.
    if chunk_seconds and max(chunk_seconds.values()) >= MIN_SECONDS:
        slowest = max(chunk_seconds, key=lambda case: chunk_seconds[case])
        assert growth_of_long_text(name, *slowest) <= MAX_GROWTH, slowest


def test_the_rule_for_shell_is_replaced():
    shell = [rule[0] for rule in BashLexer.tokens["data"] if rule[0].startswith(r"(?s)\$'")]
    assert shell == [r"(?s)\$'(?:\\.|[^'\\])*'"]


def test_a_block_for_an_exponential_lexer_is_shown_as_it_is():
    text = "```scala\n" + '"a ' * 3_000 + "\n```\n```cpp-objdump\n" + "0 " * 4_500 + "\n```"
    assert seconds(markup._render, text) < 1


def test_code_beyond_the_budget_of_a_message_is_shown_as_it_is():
    block = "```python\ndef f(): pass\n```\n\n"
    blocks = markup.MAX_HIGHLIGHT_CHARS // len("def f(): pass\n")
    html = markup._render(block * (blocks + 20))
    assert html.count('<span class="k">def</span>') == blocks
    assert html.count("<code>def f(): pass\n</code>") == 20


def test_formulas_beyond_the_budget_of_a_message_are_shown_as_they_are():
    formula = "$" + "x+" * 400 + "x$\n\n"
    html = markup._render(formula * 40)
    assert html.count("<math") == markup.MAX_MESSAGE_MATH_CHARS // 801
    assert html.count("<code>x+x") == 40 - markup.MAX_MESSAGE_MATH_CHARS // 801


def test_a_text_that_is_too_long_is_shown_without_formatting():
    html = markup._render("**a** <b>\n" * 4_001)
    assert html.startswith("<pre><code>**a** &lt;b&gt;\n")


def test_long_code_is_highlighted_without_a_change():
    code = "def f():\n    return '''a\n\nb'''\n\n\n" * 90
    text = re.sub(r"<[^>]*>", "", markup.highlight(code, "python")).replace("&#39;", "'")
    assert text == code


def test_tables_beyond_the_budget_are_shown_as_they_are():
    html = markup._render("| a | b |\n|---|---|\n| 1 | 2 |\n\n" * 1_000)
    # Each counts as three rows of four cells: the bars are counted.
    assert html.count("<table") == markdown_budgets.MAX_TABLE_CELLS // 12


def test_long_quotations_are_nested_up_to_a_number_of_lines():
    mail = "> a\n> > b\n> > > c\n" * 400
    assert markup._render(mail + "\n> > end").count("<blockquote") == 5
    bomb = markup._render("> " * 15 + "a\n" * 10_000 + "\n> end")
    levels = markdown_budgets.MAX_QUOTED_LINES // 10_000
    assert bomb.count("<blockquote") == levels + 2
    assert bomb.count("a\n") == 10_000 - 1 and "end" in bomb


def test_quotations_in_a_long_list_are_rendered():
    items = "- a\n" * 1_000 + "- b\n  > c\n" * 1_000
    assert markup._render(items).count("<blockquote") == 1_000


def test_the_cache_forgets(monkeypatch):
    cache, rendered = HtmlCache(), []

    def render(text):
        rendered.append(text)
        return text.upper()

    assert cache.get("a", render) == cache.get("a", render) == "A"
    assert rendered == ["a"]
    moment = time.monotonic() + markdown_budgets.CACHE_TIMEOUT_S
    monkeypatch.setattr(markdown_budgets.time, "monotonic", lambda: moment)
    cache.get("b", render)
    assert [entry.html for entry in cache._entries.values()] == ["B"]


def test_the_cache_keeps_a_limited_number_of_characters(monkeypatch):
    monkeypatch.setattr(markdown_budgets, "CACHE_CHARS", 25)
    cache = HtmlCache()
    for letter in "abcdef":
        cache.get(letter * 10, str.upper)
    assert [entry.html[0] for entry in cache._entries.values()] == ["E", "F"]
    cache.get("x" * 30, str.upper)
    assert not cache._entries and not cache._chars
