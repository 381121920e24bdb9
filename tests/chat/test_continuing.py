"""Where a request goes on with a conversation, and when it does not."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.continuing import Again, Line, Onward, plan


def kept(*texts: str, ours: bool = True) -> list[Line]:
    """A path of questions and answers by turns; the id of each is its place, from 1."""
    roles = ("user", "assistant")
    return [
        Line(roles[place % 2], text, id=UUID(int=place + 1), ours=ours)
        for place, text in enumerate(texts)
    ]


def asked(*texts: str) -> list[Line]:
    """A request whose last message is a question."""
    roles = ("user", "assistant")
    count = len(texts) - 1
    return [Line(roles[(count - place) % 2], text) for place, text in enumerate(texts)]


PATH = kept("Who owns billing?", "Ana does.", "Since when?", "Since March.")


@pytest.mark.parametrize(
    "request_",
    [
        asked("So?"),
        asked("Who owns billing?", "Ana does.", "Since when?", "Since March.", "So?"),
        asked("Since when?", "Since March.", "So?"),
        asked("Since March.", "So?"),
        asked("Since when?", "Since  March.\n", "So?"),
        asked("Since when?", "Since M", "So?"),
        asked("Since when?", "Since March. And more that a proxy added.", "So?"),
        asked("Since when?", "Something else entirely.", "So?"),
        asked("Who owned billing?", "Ana does.", "Since when?", "Since March.", "So?"),
        asked("Since when?", '<details type="reasoning">Hm</details>\nSince March.', "So?"),
    ],
)
def test_what_is_new_goes_to_the_end(request_):
    assert plan(PATH, request_, False) == Onward(len(request_) - 1)


def test_nothing_goes_on_with_what_it_does_not_know():
    assert plan(PATH, asked("Translate: cat", "Katze", "Translate: dog"), False) is None


def test_the_last_question_again():
    again = Again(UUID(int=3))
    assert plan(PATH, asked("Since when?"), False) == again
    assert plan(PATH, asked("Who owns billing?", "Ana does.", "Since  when?"), False) == again


def test_an_earlier_question_again_needs_its_place():
    request = asked("Who owns billing?")
    assert plan(PATH, request, False) == Onward(0)
    longer = [*PATH, *kept("Sure?", "Yes.")]
    request = asked("Who owns billing?", "Ana does.", "Since when?")
    assert plan(longer, request, False) == Again(UUID(int=3))


def test_a_question_in_place_of_another():
    request = asked("Who owns billing?", "Ana does.", "Why?")
    assert plan(PATH, request, False) == Onward(2, UUID(int=2))


def test_what_was_said_elsewhere_is_never_replaced():
    path = [*PATH[:2], *kept("", "", "Since when?", "Since March.", ours=False)[2:]]
    request = asked("Who owns billing?", "Ana does.", "Why?")
    assert plan(path, request, False) == Onward(2)


def test_a_deleted_question_is_not_answered_again():
    gone = Line("user", "Since when?", id=UUID(int=3), ours=True, stands=False)
    assert plan([*PATH[:2], gone], asked("Since when?"), False) == Onward(0)


def test_another_image_is_another_question():
    path = [Line("user", "What is this?", images=("red",), id=UUID(int=1))]
    assert plan(path, [Line("user", "What is this?", images=("blue",))], False) == Onward(0)
    assert plan(path, [Line("user", "What is this?", images=("red",))], False) == Again(UUID(int=1))


def test_what_the_record_lacks_at_its_end_is_taken_in():
    request = asked("Since when?", "Since March.", "Who told you?", "Ben.", "So?")
    assert plan(PATH, request, False) == Onward(2)


def test_what_differs_in_the_middle_is_not():
    request = asked("Who owns billing?", "Ana does.", "How long?", "A year.", "So?")
    assert plan(PATH, request, False) == Onward(4)


def test_a_conversation_that_is_new_takes_all_and_one_that_was_emptied_nothing():
    request = asked("One", "Two", "Three")
    assert plan([], request, True) == Onward(0)
    assert plan([], request, False) == Onward(2)


def test_of_many_alike_the_one_with_the_same_before_it_is_meant():
    path = kept("Next", "One.", "Next", "Two.", "Next", "Three.")
    request = asked("Next", "One.", "Next", "Two.", "Stop")
    assert plan(path, request, False) == Onward(4, UUID(int=4))


@pytest.mark.parametrize(
    "text",
    [
        "### Task:\nName it.\n### Chat History:\n<chat_history>\nUSER: x\n</chat_history>",
        "Title, please:\nUser: Since when?\nAssistant: Since March.",
        "Conversation:\n\nHuman:\nSince   when?\n\nAI:\nSince March.",
        "Provide a concise, 5-word-or-less title for the conversation.\nUser: Anything",
    ],
)
def test_what_tells_the_conversation_itself_stands_apart(text):
    assert plan(PATH, asked(text), False) is None


def test_a_title_may_be_asked_for_before_the_answer_is_there():
    path = [*PATH, Line("user", "Who told you?", id=UUID(int=5)), Line("assistant", "")]
    assert plan(path, asked("Name this:\nUser: Who told you?\nAI:"), False) is None
    assert plan(path, asked("Who told you? And when?"), False) == Onward(0)


def test_a_short_quotation_is_no_transcript():
    assert plan(PATH, asked("Since when? Since March. I see, and why?"), False) == Onward(0)


texts = st.text("ab ", max_size=3)
lines = st.lists(texts, max_size=8)


@settings(deadline=None)
@given(lines, st.lists(texts, min_size=1, max_size=8), st.booleans())
def test_whatever_comes_has_a_place_or_stands_apart(path, request, is_new):
    """Never beyond the request, and never below what is not on the path."""
    known = kept(*path)
    found = plan(known, asked(*request), is_new and not known)
    if isinstance(found, Onward):
        assert 0 <= found.start < len(request)
        assert found.below is None or found.below in {one.id for one in known}
    elif isinstance(found, Again):
        meant = next(one for one in known if one.id == found.id)
        assert (meant.role, meant.words) == ("user", asked(*request)[-1].words)


@settings(deadline=None)
@given(
    st.lists(texts.filter(str.strip), min_size=2, max_size=8).filter(lambda it: len(it) % 2 == 0)
)
def test_who_tells_all_of_it_goes_on_at_its_end(path):
    request = [*kept(*path), Line("user", "quite another question")]
    assert plan(kept(*path), request, False) == Onward(len(path))
