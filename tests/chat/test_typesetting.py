"""Markdown while it grows: whole blocks come once, in order, and come out as in the whole text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.streaming.markdown_blocks import BlockSplitter
from chat.templatetags.markup import markdown

TEXT = """# Plan

We move on *Tuesday*, and
nothing else happens.

1. Stop the job

   and wait.
2. Switch over

```sql
SELECT 1;

SELECT 2;
```

| a | b |
|---|--:|
| 1 | 2 |

> Quoted
> twice

Where
\\[
a
- b
\\]
$$
x = 1
- 2
$$

- [x] Done, see https://example.org/plan.
- [ ] Open[^1]

[^1]: Only
on Tuesday
[^2]: https://example.org

The end, $x^2$.
"""


def blocks(text: str, size: int) -> tuple[list[str], str]:
    growing = BlockSplitter()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [whole for piece in pieces if (whole := growing.add(piece))], growing.rest


@pytest.mark.parametrize("size", [1, 3, 7, 40, 1_000])
def test_blocks_come_out_as_in_the_whole(size):
    html_blocks, left = blocks(TEXT, size)
    assert "".join(html_blocks) + left == TEXT
    assert left == "The end, $x^2$.\n"
    assert "".join(markdown(html_block) for html_block in [*html_blocks, left]) == markdown(TEXT)


def test_a_list_and_code_are_not_cut_by_their_empty_lines():
    html_blocks, _ = blocks(TEXT, 1)
    # Short blocks may come together, because a block is parsed only after it has grown.
    assert len(html_blocks) >= 10
    first_lines = [html_block.split("\n")[0] for html_block in html_blocks]
    known = [
        *("# Plan", "We move on *Tuesday*, and", "1. Stop the job", "```sql", "| a | b |"),
        *("> Quoted", "Where", "\\[", "$$", "- [x] Done, see https://example.org/plan."),
        *("[^1]: Only", "[^2]: https://example.org"),
    ]
    assert first_lines == [line for line in known if line in first_lines]
    assert {"1. Stop the job", "```sql", "| a | b |"} <= set(first_lines)


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x85", "\u2028"])
def test_code_is_not_cut_at_characters_that_end_no_line_of_markdown(sign):
    code = f"```\na{sign}b{sign}c{sign}d\n```\n\n"
    assert blocks(f"{code}The end.\n", 1_000) == ([code], "The end.\n")


@given(st.text("ab#*-_`|$>1.) \n\r\t\x0b\x85\u2028", max_size=120), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_no_character_is_lost_or_doubled(text, size):
    html_blocks, left = blocks(text, size)
    assert "".join(html_blocks) + left == text


LINES = ["\\[", "\\]", "\\[ a", "b \\]", "$$", "- b", "> c", "= d", "", "[^1]: e", "- [x] f", "```"]


@given(st.lists(st.sampled_from(LINES), max_size=14), st.integers(1, 9))
@settings(max_examples=200, deadline=None)
def test_no_mixture_of_lines_comes_out_in_another_way(lines, size):
    text = "\n".join(lines) + "\n"
    html_blocks, left = blocks(text, size)
    whole = "".join(markdown(html_block) for html_block in [*html_blocks, left])
    assert whole == markdown(text)


def test_one_block_that_grows_for_long_costs_little():
    growing = BlockSplitter()
    looked = []
    growing_blocks = growing.add("```\n")
    assert not growing_blocks
    for _ in range(20_000):
        before = growing._parse_at
        assert not growing.add("a line of code\n")
        if growing._parse_at != before:
            looked.append(before)
    assert len(looked) < 300
