from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from chat.window import PER_MESSAGE, fit


@dataclass(frozen=True)
class Message:
    number: int
    role: str
    tokens: int


def talk(*sizes: int) -> list[Message]:
    return [
        Message(number, "assistant" if number % 2 else "user", size)
        for number, size in enumerate(sizes)
    ]


conversations = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.integers(0, 500)), max_size=60
).map(lambda rows: [Message(i, role, size) for i, (role, size) in enumerate(rows)])


def test_everything_fits_when_there_is_room():
    messages = talk(10, 20, 30)
    assert fit(messages, 50, 1_000) == messages


def test_the_newest_stay_when_the_limit_is_reached():
    assert [m.number for m in fit(talk(*[1] * 10), 4, 1_000)] == [6, 7, 8, 9]


def test_a_budget_never_leaves_an_answer_without_its_question():
    shown = fit(talk(*[1] * 10), 50, 3 * (1 + PER_MESSAGE))
    assert [m.number for m in shown] == [8, 9]


def test_the_limit_is_met_to_the_message():
    assert [m.number for m in fit(talk(*[1] * 10), 3, 1_000)] == [7, 8, 9]


def test_a_budget_cuts_at_whole_messages():
    shown = fit(talk(100, 100, 100), 50, 2 * (100 + PER_MESSAGE))
    assert [m.number for m in shown] == [2]


@given(conversations, st.integers(0, 100), st.integers(0, 5_000))
def test_the_window_is_a_suffix_within_its_bounds(messages, limit, budget):
    shown = fit(messages, limit, budget)
    assert len(shown) <= limit
    assert sum(m.tokens + PER_MESSAGE for m in shown) <= budget
    assert shown == messages[len(messages) - len(shown) :]
    if len(shown) < min(limit, len(messages)):
        assert not shown or shown[0].role == "user"
