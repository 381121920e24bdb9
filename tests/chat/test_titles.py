import pytest

from chat.conversations.titles import MAX_TITLE_CHARS, title_from


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Does the replica stay?", "Does the replica stay?"),
        ("\n\n## The  cutover\nmore", "The cutover"),
        ("- one\n- two", "one"),
        ("```sql\nSELECT 1", "SELECT 1"),
        ("3. third", "3. third"),
        ("14. April: wer fährt?", "14. April: wer fährt?"),
        ("2026 was a year", "2026 was a year"),
        (" \n#\n", ""),
    ],
)
def test_the_first_line_that_says_something_is_the_title(text, title):
    assert title_from(text) == title


def test_a_long_line_is_cut_between_words():
    title = title_from("word, " * 40)
    assert len(title) <= MAX_TITLE_CHARS
    assert title.endswith("word…")


def test_a_word_without_end_is_cut_inside():
    assert title_from("x" * 500) == "x" * (MAX_TITLE_CHARS - 1) + "…"
