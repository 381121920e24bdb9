"""How two texts differ."""

from hypothesis import given
from hypothesis import strategies as st

from memory.moderation.diffs import ADDED, REMOVED, SAME, DiffPiece, diff_lines, diff_words


def joined(pieces) -> str:
    return "".join(piece.text for piece in pieces)


def test_words_that_went_and_came_are_marked():
    was, is_now = diff_words("- stays seven days", "- stays ten days")
    assert was == [
        DiffPiece(SAME, "- stays "),
        DiffPiece(REMOVED, "seven "),
        DiffPiece(SAME, "days"),
    ]
    assert is_now == [
        DiffPiece(SAME, "- stays "),
        DiffPiece(ADDED, "ten "),
        DiffPiece(SAME, "days"),
    ]


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_word_of_either_text_is_lost(before, after):
    was, is_now = diff_words(before, after)
    assert (joined(was), joined(is_now)) == (before, after)
    assert all(piece.kind in (SAME, REMOVED) for piece in was)
    assert all(piece.kind in (SAME, ADDED) for piece in is_now)


def test_equal_texts_have_no_rows():
    assert diff_lines("one\ntwo", "one\ntwo") == []


def test_far_from_what_differs_lines_are_left_out():
    lines = [f"line {number}" for number in range(20)]
    rows = diff_lines("\n".join(lines), "\n".join([*lines[:10], "new", *lines[10:]]))
    assert [row.skipped for row in rows if row.skipped] == [8, 8]
    assert [joined(row.after) for row in rows if joined(row.before) != joined(row.after)] == ["new"]
