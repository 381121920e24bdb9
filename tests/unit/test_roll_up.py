from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory.layers.lines import Line, LineIndex, roll_up

MONDAY = date(2026, 11, 2)


def line(text: str, score: float = 1.0, day: int = 0) -> Line:
    return Line(text, MONDAY + timedelta(days=day), "Ana", score=score)


BILLING = line("Payments owns billing from now on.", 3)
TEA = line("Cleo prefers green tea in the morning.", 2)
POOL = line("PgBouncer runs in transaction mode since INFRA-2231.", 5)


def test_each_conversation_contributes_once_before_any_contributes_twice():
    assert roll_up([[BILLING, TEA], [POOL]]) == [POOL, BILLING, TEA]
    assert roll_up([[BILLING, TEA], [POOL]], limit=2) == [POOL, BILLING]


def test_a_line_that_repeats_another_is_left_out():
    again = line("Yes, payments owns the billing now.", 1)
    assert roll_up([[BILLING], [again, TEA]]) == [BILLING, TEA]
    assert roll_up([[BILLING], [BILLING], []]) == [BILLING]


def test_each_week_has_a_line_among_the_first():
    week = [[line(f"Subject{n} number{n} of{n}", 9 - n)] for n in range(5)]
    later = [line("The second week had one important meeting.", 0.5, day=7)]
    assert roll_up([*week, later])[:2] == [week[0][0], later[0]]


def test_nothing_rolls_up_into_nothing():
    assert roll_up([]) == roll_up([[], []]) == []


LISTS = st.lists(
    st.lists(
        st.builds(
            line,
            st.lists(st.sampled_from("ant bee cat dog elk fox gnu hen 漢字 x".split())).map(
                " ".join
            ),
            st.floats(0, 9),
            st.integers(0, 30),
        ),
        max_size=5,
    ),
    max_size=6,
)


@given(LISTS)
def test_the_lines_of_a_conversation_stay_in_order_and_only_repeats_are_missing(lists):
    rolled = roll_up(lists)
    index = LineIndex()
    for it in rolled:
        assert not index.repeats(it)
        index.add(it)
    for lines in lists:
        places = [place for it in lines for place, other in enumerate(rolled) if other is it]
        assert places == sorted(places)
        for it in lines:
            assert any(other is it for other in rolled) or index.repeats(it) or not it.text
