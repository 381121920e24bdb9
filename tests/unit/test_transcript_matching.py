"""How a request of the OpenAI API is matched to a stored session."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.openai_api.transcript_matching import (
    ComparedMessage,
    Continuation,
    Regeneration,
    match_transcript,
)


def stored_lines(*texts: str, from_api: bool = True) -> list[ComparedMessage]:
    """A path of questions and answers by turns; the id of each is its place, from 1."""
    roles = ("user", "assistant")
    return [
        ComparedMessage(roles[place % 2], text, id=UUID(int=place + 1), from_api=from_api)
        for place, text in enumerate(texts)
    ]


def request_lines(*texts: str) -> list[ComparedMessage]:
    """A request whose last message is a question."""
    roles = ("user", "assistant")
    count = len(texts) - 1
    return [ComparedMessage(roles[(count - place) % 2], text) for place, text in enumerate(texts)]


PATH = stored_lines("Who owns billing?", "Ana does.", "Since when?", "Since March.")


@pytest.mark.parametrize(
    "request_",
    [
        request_lines("So?"),
        request_lines("Who owns billing?", "Ana does.", "Since when?", "Since March.", "So?"),
        request_lines("Since when?", "Since March.", "So?"),
        request_lines("Since March.", "So?"),
        request_lines("Since when?", "Since  March.\n", "So?"),
        request_lines("Since when?", "Since M", "So?"),
        request_lines("Since when?", "Since March. And more that a proxy added.", "So?"),
        request_lines("Since when?", "Something else entirely.", "So?"),
        request_lines("Who owned billing?", "Ana does.", "Since when?", "Since March.", "So?"),
        request_lines("Since when?", '<details type="reasoning">Hm</details>\nSince March.', "So?"),
    ],
)
def test_new_messages_go_to_the_end(request_):
    assert match_transcript(PATH, request_, False) == Continuation(len(request_) - 1)


def test_nothing_goes_on_with_what_it_does_not_know():
    assert (
        match_transcript(PATH, request_lines("Translate: cat", "Katze", "Translate: dog"), False)
        is None
    )


def test_the_last_question_again():
    regeneration = Regeneration(UUID(int=3))
    assert match_transcript(PATH, request_lines("Since when?"), False) == regeneration
    assert (
        match_transcript(
            PATH, request_lines("Who owns billing?", "Ana does.", "Since  when?"), False
        )
        == regeneration
    )


def test_an_earlier_question_again_needs_its_place():
    sent = request_lines("Who owns billing?")
    assert match_transcript(PATH, sent, False) == Continuation(0)
    longer = [*PATH, *stored_lines("Sure?", "Yes.")]
    sent = request_lines("Who owns billing?", "Ana does.", "Since when?")
    assert match_transcript(longer, sent, False) == Regeneration(UUID(int=3))


def test_a_question_in_place_of_another():
    sent = request_lines("Who owns billing?", "Ana does.", "Why?")
    assert match_transcript(PATH, sent, False) == Continuation(2, UUID(int=2))


def test_messages_from_elsewhere_are_never_replaced():
    path = [*PATH[:2], *stored_lines("", "", "Since when?", "Since March.", from_api=False)[2:]]
    sent = request_lines("Who owns billing?", "Ana does.", "Why?")
    assert match_transcript(path, sent, False) == Continuation(2)


def test_a_deleted_question_is_not_answered_again():
    deleted_message = ComparedMessage(
        "user", "Since when?", id=UUID(int=3), from_api=True, is_deleted=True
    )
    assert match_transcript(
        [*PATH[:2], deleted_message], request_lines("Since when?"), False
    ) == Continuation(0)


def test_another_image_is_another_question():
    path = [ComparedMessage("user", "What is this?", images=("red",), id=UUID(int=1))]
    assert match_transcript(
        path, [ComparedMessage("user", "What is this?", images=("blue",))], False
    ) == Continuation(0)
    assert match_transcript(
        path, [ComparedMessage("user", "What is this?", images=("red",))], False
    ) == Regeneration(UUID(int=1))


def test_messages_missing_at_the_end_of_the_record_are_added():
    sent = request_lines("Since when?", "Since March.", "Who told you?", "Ben.", "So?")
    assert match_transcript(PATH, sent, False) == Continuation(2)


def test_messages_missing_in_the_middle_are_not_added():
    sent = request_lines("Who owns billing?", "Ana does.", "How long?", "A year.", "So?")
    assert match_transcript(PATH, sent, False) == Continuation(4)


def test_a_conversation_that_is_new_takes_all_and_one_that_was_emptied_nothing():
    sent = request_lines("One", "Two", "Three")
    assert match_transcript([], sent, True) == Continuation(0)
    assert match_transcript([], sent, False) == Continuation(2)


def test_of_many_alike_the_one_with_the_same_before_it_is_meant():
    path = stored_lines("Next", "One.", "Next", "Two.", "Next", "Three.")
    sent = request_lines("Next", "One.", "Next", "Two.", "Stop")
    assert match_transcript(path, sent, False) == Continuation(4, UUID(int=4))


@pytest.mark.parametrize(
    "text",
    [
        "### Task:\nName it.\n### Chat History:\n<chat_history>\nUSER: x\n</chat_history>",
        "Title, please:\nUser: Since when?\nAssistant: Since March.",
        "Conversation:\n\nHuman:\nSince   when?\n\nAI:\nSince March.",
        "Provide a concise, 5-word-or-less title for the conversation.\nUser: Anything",
    ],
)
def test_a_request_about_the_conversation_is_no_continuation(text):
    assert match_transcript(PATH, request_lines(text), False) is None


def test_a_title_may_be_asked_for_before_the_answer_is_there():
    path = [
        *PATH,
        ComparedMessage("user", "Who told you?", id=UUID(int=5)),
        ComparedMessage("assistant", ""),
    ]
    assert (
        match_transcript(path, request_lines("Name this:\nUser: Who told you?\nAI:"), False) is None
    )
    assert match_transcript(path, request_lines("Who told you? And when?"), False) == Continuation(
        0
    )


def test_a_short_quotation_is_no_transcript():
    assert match_transcript(
        PATH, request_lines("Since when? Since March. I see, and why?"), False
    ) == Continuation(0)


texts = st.text("ab ", max_size=3)
lines = st.lists(texts, max_size=8)


@given(lines, st.lists(texts, min_size=1, max_size=8), st.booleans())
def test_every_request_gets_a_valid_match_or_none(path, request, is_new):
    """Never beyond the request, and never below what is not on the path."""
    known = stored_lines(*path)
    matched = match_transcript(known, request_lines(*request), is_new and not known)
    if isinstance(matched, Continuation):
        assert 0 <= matched.start < len(request)
        assert matched.below is None or matched.below in {known_item.id for known_item in known}
    elif isinstance(matched, Regeneration):
        meant = next(known_item for known_item in known if known_item.id == matched.id)
        assert (meant.role, meant.normalized_text) == (
            "user",
            request_lines(*request)[-1].normalized_text,
        )


@given(
    st.lists(texts.filter(str.strip), min_size=2, max_size=8).filter(lambda it: len(it) % 2 == 0)
)
def test_a_complete_transcript_continues_at_its_end(path):
    sent = [*stored_lines(*path), ComparedMessage("user", "quite another question")]
    assert match_transcript(stored_lines(*path), sent, False) == Continuation(len(path))
