"""Long memories in parts that can be taken or refused one by one."""

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from chat.importers import memories
from chat.importers.memories import MAX_PART_TOKENS, split_text
from projects.core import token_counting

SENTENCE = "The rye dough rests for two hours in the cold room. "
TEXTS = st.lists(
    st.sampled_from(
        [SENTENCE, "Bread.\n", "\n\n", "x" * 9_000, "面包很好。", " ", "¿Qué? ", "- a\n"]
    ),
    max_size=400,
).map("".join)


def test_a_short_memory_is_one_part():
    assert split_text(f"{SENTENCE}\n\n{SENTENCE}") == [f"{SENTENCE}\n\n{SENTENCE}".strip()]


def test_a_long_one_is_cut_where_paragraphs_end():
    paragraph = SENTENCE * 40 + "\n\n"
    parts = split_text(paragraph * 10)
    assert 2 < len(parts) < 10
    assert all(part.endswith("room.") and part.startswith("The rye") for part in parts)
    assert {part.count("\n\n") + 1 for part in parts} == {2}


def test_a_long_paragraph_is_cut_where_sentences_end():
    parts = split_text(SENTENCE * 400)
    assert len(parts) > 2
    assert all(part.startswith("The rye") and part.endswith("room.") for part in parts)


def test_a_long_sentence_is_cut_between_words():
    parts = split_text("bread " * 4_000)
    assert len(parts) == 3
    assert set(" ".join(parts).split()) == {"bread"}


@examples(max_examples=30, deadline=None)
@given(TEXTS)
def test_every_part_is_bounded_and_nothing_is_lost(text):
    parts = split_text(text)
    # Pieces are counted one by one; together they may be a few tokens more.
    assert all(0 < token_counting.count(part) <= MAX_PART_TOKENS + 50 for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_memory_that_occurs_twice_is_imported_once():
    class Owner:
        pk = 7

    imported_session = memories.memories_session("Claude", Owner, ["Bakes.", "Sails.", "Bakes."])
    assert [message.text for message in imported_session.messages] == ["Bakes.", "Sails."]
    assert (imported_session.key, imported_session.title) == ("memories:7", "Memories from Claude")
