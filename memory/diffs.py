"""How two texts differ, by lines and by words. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

SAME, GONE, NEW = "same", "gone", "new"
# A word with the space behind it: spaces of their own would make a long text slow to compare.
WORD = re.compile(r"\S+\s*|\s+")
# Equal lines that are shown around what differs.
CONTEXT = 2


@dataclass(frozen=True)
class Piece:
    """A stretch of a text: `kind` is SAME in both, GONE from the first, or NEW in the second."""

    kind: str
    text: str


@dataclass(frozen=True)
class Row:
    """A line as it was and as it is, in pieces; or `skipped` equal lines that are left out."""

    before: Sequence[Piece] = ()
    after: Sequence[Piece] = ()
    skipped: int = 0


def by_words(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces: those of the first joined are `before`, of the second `after`."""
    left, right = WORD.findall(before), WORD.findall(after)
    was: list[Piece] = []
    is_now: list[Piece] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for tag, start, end, from_, to in matcher.get_opcodes():
        kinds = (SAME, SAME) if tag == "equal" else (GONE, NEW)
        _add(was, kinds[0], left[start:end])
        _add(is_now, kinds[1], right[from_:to])
    return was, is_now


def _add(pieces: list[Piece], kind: str, words: Sequence[str]) -> None:
    if words:
        pieces.append(Piece(kind, "".join(words)))


def by_lines(before: str, after: str) -> list[Row]:
    """The lines that differ, their words compared, with CONTEXT equal ones around; empty when none
    does.
    """
    left, right = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    rows: list[Row] = []
    shown = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if group[0][1] > shown:
            rows.append(Row(skipped=group[0][1] - shown))
        for tag, start, end, from_, to in group:
            rows.extend(_rows(tag, left[start:end], right[from_:to]))
            shown = end
    if rows and shown < len(left):
        rows.append(Row(skipped=len(left) - shown))
    return rows


def _rows(tag: str, left: Sequence[str], right: Sequence[str]) -> Iterator[Row]:
    for was, is_now in zip_longest(left, right, fillvalue=""):
        if tag == "equal":
            yield Row([Piece(SAME, was)], [Piece(SAME, is_now)])
        else:
            yield Row(*by_words(was, is_now))
