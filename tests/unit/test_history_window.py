"""Selection of the messages and images of a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.prompt.history import (
    MAX_IMAGES,
    choose_images,
    drop_unpaired_calls,
    fit,
    without_calls,
)
from chat.prompt.types import MESSAGE_OVERHEAD_TOKENS, PromptImage, PromptMessage, ToolCall
from projects.core.models import new_id


def message(number: int, role: str, tokens: int) -> PromptMessage:
    return PromptMessage(role, "", text_tokens=tokens, source=number)


def talk(*sizes: int) -> list[PromptMessage]:
    return [
        message(number, "assistant" if number % 2 else "user", size)
        for number, size in enumerate(sizes)
    ]


conversations = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.integers(0, 500)), max_size=60
).map(lambda rows: [message(i, role, size) for i, (role, size) in enumerate(rows)])


def test_everything_fits_when_there_is_room():
    messages = talk(10, 20, 30)
    assert fit(messages, 50, 1_000) == messages


def test_the_newest_stay_when_the_limit_is_reached():
    assert [m.source for m in fit(talk(*[1] * 10), 4, 1_000)] == [6, 7, 8, 9]


def test_a_budget_never_leaves_an_answer_without_its_question():
    selected = fit(talk(*[1] * 10), 50, 3 * (1 + MESSAGE_OVERHEAD_TOKENS))
    assert [m.source for m in selected] == [8, 9]


def test_the_limit_is_met_to_the_message():
    assert [m.source for m in fit(talk(*[1] * 10), 3, 1_000)] == [7, 8, 9]


def test_a_budget_cuts_at_whole_messages():
    selected = fit(talk(100, 100, 100), 50, 2 * (100 + MESSAGE_OVERHEAD_TOKENS))
    assert [m.source for m in selected] == [2]


@given(conversations, st.integers(0, 100), st.integers(0, 5_000))
def test_the_window_is_a_suffix_within_its_bounds(messages, limit, budget):
    selected = fit(messages, limit, budget)
    assert len(selected) <= limit
    assert sum(m.tokens for m in selected) <= budget
    assert selected == messages[len(messages) - len(selected) :]
    if len(selected) < min(limit, len(messages)):
        assert not selected or selected[0].role == "user"


def image(width: int = 512, height: int = 512, description: str = "") -> PromptImage:
    return PromptImage(new_id(), "image/png", description, width, height, "x")


@given(
    st.lists(st.tuples(st.integers(1, 2048), st.integers(1, 2048)), max_size=40),
    st.integers(-5, 60_000),
)
def test_the_newest_are_shown_within_the_budget(sizes, budget):
    images = [image(width, height) for width, height in sizes]
    chosen = choose_images(images, budget)
    selected = [item for item in images if item.id in chosen]
    assert selected == images[: len(selected)]
    assert len(selected) <= MAX_IMAGES
    assert sum(item.tokens for item in selected) <= max(budget, 0)


ONE, TWO = (ToolCall(key, "look", "{}") for key in ("one", "two"))
QUESTION, DONE = PromptMessage("user", "Look!"), PromptMessage("user", "Done.")


def calling(*calls: ToolCall, text: str = "") -> PromptMessage:
    return PromptMessage("assistant", text, calls=calls)


def answer(text: str, call: str) -> PromptMessage:
    return PromptMessage("tool", text, tool_call_id=call)


def test_answered_calls_stay():
    messages = [
        QUESTION,
        calling(ONE, TWO),
        answer("b", "two"),
        answer("a", "one"),
    ]
    assert drop_unpaired_calls([*messages, DONE]) == [*messages, DONE]


@pytest.mark.parametrize(
    "messages",
    [
        [calling(ONE)],
        [calling(ONE, TWO), answer("a", "one")],
        [answer("a", "one")],
        [calling(ONE), answer("b", "two")],
        [calling(ONE), DONE, answer("a", "one")],
    ],
)
def test_half_an_exchange_is_left_out(messages):
    assert [
        item
        for item in drop_unpaired_calls([QUESTION, *messages, DONE])
        if item.calls or item.tool_call_id
    ] == []


def test_words_beside_a_call_stay():
    assert drop_unpaired_calls([calling(ONE, text="I look."), DONE]) == [
        calling(text="I look."),
        DONE,
    ]


def test_an_answer_given_twice_stands_once():
    messages = [calling(ONE), answer("a", "one"), answer("b", "one")]
    assert drop_unpaired_calls(messages) == [messages[0], messages[2]]


def test_a_model_without_tools_reads_the_words():
    messages = [QUESTION, calling(ONE, text="I look."), answer("a", "one"), calling(TWO)]
    assert without_calls(messages) == [QUESTION, calling(text="I look.")]
