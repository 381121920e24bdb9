"""Differences between two texts, line by line and word by word. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

SAME, REMOVED, ADDED = "same", "gone", "new"
# A word and the space after it. Separate spaces would make comparing a long text slow.
WORD = re.compile(r"\S+\s*|\s+")
# The number of equal lines that are shown before and after a difference.
CONTEXT_LINES = 2


@dataclass(frozen=True)
class DiffPiece:
    """A part of a text. `kind` is SAME, REMOVED (only in the first text) or ADDED (only in the
    second).
    """

    kind: str
    text: str


@dataclass(frozen=True)
class DiffRow:
    """A line before and after the change, in pieces; or `skipped`, a number of equal lines."""

    before: Sequence[DiffPiece] = ()
    after: Sequence[DiffPiece] = ()
    skipped: int = 0


def diff_words(before: str, after: str) -> tuple[list[DiffPiece], list[DiffPiece]]:
    """Return the pieces of `before` and the pieces of `after`. Joined, they are the whole texts."""
    left, right = WORD.findall(before), WORD.findall(after)
    left_pieces: list[DiffPiece] = []
    right_pieces: list[DiffPiece] = []
    # difflib would treat frequent words as junk, and then take minutes for 2,500 equal words.
    matcher = SequenceMatcher(None, left, right)
    for tag, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        is_equal = tag == "equal"
        if left_end > left_start:
            text = "".join(left[left_start:left_end])
            left_pieces.append(DiffPiece(SAME if is_equal else REMOVED, text))
        if right_end > right_start:
            text = "".join(right[right_start:right_end])
            right_pieces.append(DiffPiece(SAME if is_equal else ADDED, text))
    return left_pieces, right_pieces


def diff_lines(before: str, after: str) -> list[DiffRow]:
    """Return the lines that differ, by word, with CONTEXT_LINES equal lines around them."""
    left, right = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, left, right)
    rows: list[DiffRow] = []
    shown = 0
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        if group[0][1] > shown:
            rows.append(DiffRow(skipped=group[0][1] - shown))
        for _tag, left_start, left_end, right_start, right_end in group:
            pairs = zip_longest(
                left[left_start:left_end], right[right_start:right_end], fillvalue=""
            )
            # diff_words returns equal lines as one piece.
            rows += [DiffRow(*diff_words(*pair)) for pair in pairs]
            shown = left_end
    if rows and shown < len(left):
        rows.append(DiffRow(skipped=len(left) - shown))
    return rows
