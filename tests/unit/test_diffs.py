"""How two texts differ."""

from hypothesis import given
from hypothesis import strategies as st

from memory.diffs import GONE, NEW, SAME, Piece, by_lines, by_words


def joined(pieces) -> str:
    return "".join(piece.text for piece in pieces)


def test_words_that_went_and_came_are_marked():
    was, is_now = by_words("- stays seven days", "- stays ten days")
    assert was == [Piece(SAME, "- stays "), Piece(GONE, "seven "), Piece(SAME, "days")]
    assert is_now == [Piece(SAME, "- stays "), Piece(NEW, "ten "), Piece(SAME, "days")]


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_word_of_either_text_is_lost(before, after):
    was, is_now = by_words(before, after)
    assert (joined(was), joined(is_now)) == (before, after)
    assert all(piece.kind in (SAME, GONE) for piece in was)
    assert all(piece.kind in (SAME, NEW) for piece in is_now)


def test_equal_texts_have_no_rows():
    assert by_lines("one\ntwo", "one\ntwo") == []


def test_far_from_what_differs_lines_are_left_out():
    lines = [f"line {number}" for number in range(20)]
    rows = by_lines("\n".join(lines), "\n".join([*lines[:10], "new", *lines[10:]]))
    assert [row.skipped for row in rows if row.skipped] == [8, 8]
    assert [joined(row.after) for row in rows if joined(row.before) != joined(row.after)] == ["new"]
