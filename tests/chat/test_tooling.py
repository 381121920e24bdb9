"""Calls of tools and what answered them stand in a prompt together, or not at all."""

from dataclasses import dataclass

import pytest

from chat.tooling import ToolCall, paired, read, without_calls, written


@dataclass(frozen=True)
class Message:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""


ONE, TWO = (ToolCall(key, "look", "{}") for key in ("one", "two"))
ASKED, SAID = Message("Look!"), Message("Done.")


def test_answered_calls_stay():
    told = [
        ASKED,
        Message(calls=(ONE, TWO)),
        Message("b", answers="two"),
        Message("a", answers="one"),
    ]
    assert paired([*told, SAID]) == [*told, SAID]


@pytest.mark.parametrize(
    "told",
    [
        [Message(calls=(ONE,))],
        [Message(calls=(ONE, TWO)), Message("a", answers="one")],
        [Message("a", answers="one")],
        [Message(calls=(ONE,)), Message("b", answers="two")],
        [Message(calls=(ONE,)), SAID, Message("a", answers="one")],
    ],
)
def test_what_lacks_its_other_half_goes(told):
    assert [one for one in paired([ASKED, *told, SAID]) if one.calls or one.answers] == []


def test_words_beside_a_call_stay():
    assert paired([Message("I look.", (ONE,)), SAID]) == [Message("I look."), SAID]


def test_an_answer_given_twice_stands_once():
    told = [Message(calls=(ONE,)), Message("a", answers="one"), Message("b", answers="one")]
    assert paired(told) == [told[0], told[2]]


def test_a_model_without_tools_reads_the_words():
    told = [ASKED, Message("I look.", (ONE,)), Message("a", answers="one"), Message(calls=(TWO,))]
    assert without_calls(told) == [ASKED, Message("I look.")]


def test_calls_are_kept_and_read():
    assert read(written([ONE, TWO])) == (ONE, TWO)


@pytest.mark.parametrize("kept", [None, {}, "x", [7], [{}], [{"id": ""}]])
def test_what_is_no_call_is_left_out(kept):
    assert read(kept) == ()
