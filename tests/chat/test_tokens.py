import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.core import token_counting

texts = st.text(max_size=200) | st.text(alphabet="ab \n.'é漢😀👩\u200d", max_size=200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("The cutover is on 3 March.", 10), ("数据库", 1)],
)
def test_tokens_are_those_of_cl100k(text, expected):
    assert token_counting.count(text) == expected


def test_the_text_of_a_special_token_counts_as_text():
    assert token_counting.count("<|endoftext|>") > 1


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, " " * 1_000_000 + "x", "\n" * 1_000_000, "=-" * 500_000, "a b " * 250_000],
    ids=["letters", "spaces", "newlines", "punctuation", "words"],
)
def test_a_megabyte_counts_and_cuts_in_well_under_a_second(text):
    token_counting.count("warm")
    began = time.process_time()
    assert token_counting.count(text) > 1_000
    assert token_counting.count(token_counting.truncate(text, 1_000)) <= 1_000
    assert time.process_time() - began < 10


@settings(max_examples=150, deadline=None)
@given(texts, st.integers(min_value=-1, max_value=60))
def test_a_cut_is_a_prefix_within_the_limit(text, limit):
    prefix = token_counting.truncate(text, limit)
    assert text.startswith(prefix)
    assert token_counting.count(prefix) <= max(limit, 0)


@settings(max_examples=100, deadline=None)
@given(texts)
def test_a_text_that_fits_is_not_cut(text):
    assert token_counting.truncate(text, token_counting.count(text)) == text


def test_a_cut_takes_all_the_room_there_is():
    assert token_counting.truncate("one two three four", 3) == "one two three"


def test_a_character_is_never_split():
    family = "👩‍👩‍👧 at home"
    for limit in range(token_counting.count(family) + 1):
        assert "\ufffd" not in token_counting.truncate(family, limit)


@settings(max_examples=150, deadline=None)
@given(st.lists(texts.map(lambda text: f"x{text.rstrip()}\n"), max_size=6))
def test_pieces_that_end_in_a_newline_add_up(pieces):
    assert token_counting.count("".join(pieces)) == sum(map(token_counting.count, pieces))


def test_a_long_run_counts_the_same_wherever_it_stands():
    run = "x" + "ab" * 5_000 + "\n"
    before = "Some words before.\n"
    assert token_counting.count(before + run) == token_counting.count(
        before
    ) + token_counting.count(run)
