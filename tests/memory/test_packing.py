"""Excerpts into a budget."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memory.recall import format_excerpt, pack_into_budget
from projects.core import token_counting


@given(st.lists(st.integers(1, 400)), st.integers(0, 2_000), st.integers(0, 20))
def test_what_is_packed_fits_and_what_is_not_did_not(costs, budget, limit):
    packed = pack_into_budget(costs, budget, limit)
    assert packed == sorted(set(packed)) and len(packed) <= limit
    assert sum(costs[place] for place in packed) <= budget
    for place in set(range(len(costs))) - set(packed):
        before = sum(costs[other] for other in packed if other < place)
        assert len(packed) == limit or costs[place] > budget - before


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
