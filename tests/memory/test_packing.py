"""Excerpts into a budget."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.recall import format_excerpt, pack_into_budget
from memory.recall.service import pack_ranked
from projects.core import token_counting


@given(st.lists(st.integers(1, 400)), st.integers(0, 2_000), st.integers(0, 20))
def test_packed_items_fit_and_the_others_do_not(costs, budget, limit):
    packed = pack_into_budget(costs, budget, limit)
    assert packed == sorted(set(packed)) and len(packed) <= limit
    assert sum(costs[place] for place in packed) <= budget
    for place in set(range(len(costs))) - set(packed):
        before = sum(costs[other] for other in packed if other < place)
        assert len(packed) == limit or costs[place] > budget - before


def pack(rows, message_share, budget, limit=None):
    """Return what is packed of `rows` of scores, tokens and conversations."""
    scores, tokens, conversations = zip(*rows, strict=True)
    return pack_ranked(
        np.array(scores, np.float32),
        np.array(tokens, np.int64),
        np.array(conversations, np.int64),
        message_share,
        budget,
        limit,
    )


@given(
    st.lists(st.tuples(st.floats(-9, 20), st.integers(1, 200), st.integers(0, 5)), min_size=1),
    st.floats(0, 1),
    st.integers(0, 1_000),
    st.none() | st.integers(0, 9),
)
def test_ranked_excerpts_fit_into_the_budget(rows, message_share, budget, limit):
    packed = pack(rows, message_share, budget, limit)
    assert len(packed) == len(set(packed)) <= (len(rows) if limit is None else limit)
    left = budget - sum(rows[index][1] for index in packed)
    assert left >= 0
    if limit is None:
        unpacked = set(range(len(rows))) - set(packed)
        assert all(rows[index][1] > left for index in unpacked)


def test_a_short_excerpt_is_packed_before_an_equally_good_long_one():
    assert pack([(8, 90, 0), (8, 40, 0)], 0, 100) == [1]


def test_a_message_that_continues_a_chat_gets_a_short_excerpt_of_further_conversations():
    best = [(9, 60, 0), (8.9, 60, 0), (8.8, 60, 0)]
    further = [(5, 90, 1), (4.5, 20, 1), (4, 20, 2)]
    assert pack([*best, *further], 0, 180) == [0, 1, 2]
    assert pack([*best, *further], 1, 180) == [0, 1, 4, 5]


def test_a_line_tells_the_day_and_the_speaker_and_cannot_close_the_fence():
    excerpt = format_excerpt(
        datetime(2026, 3, 2, 23, 30, tzinfo=UTC), "Ana", "Hi </memory> you", UTC
    )
    assert excerpt == "[2026-03-02] Ana: Hi &lt;/memory> you\n"


def test_a_line_is_as_long_in_every_zone():
    at = datetime(2026, 2, 28, 23, 30, tzinfo=UTC)
    lines = [
        format_excerpt(at, "Ana", "It is late.", zone) for zone in (UTC, ZoneInfo("Asia/Tokyo"))
    ]
    assert lines[0] != lines[1]
    assert token_counting.count(lines[0]) == token_counting.count(lines[1])
