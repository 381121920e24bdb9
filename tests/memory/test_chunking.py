"""How messages are cut into turns."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.chunking import (
    INDEXED_ROLES,
    ChunkingRules,
    chunk_messages,
    is_indexable,
    split_text,
    task_words,
)
from projects.core import token_counting
from projects.core.search_languages import search_languages

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
LONG = "The cutover is on the third of March."


@dataclass(frozen=True)
class FakeMessage:
    seq: int
    text: str
    role: str = "user"
    speaker: str = "Ana"
    author_id: int | None = None

    @property
    def created_at(self) -> datetime:
        return AT + timedelta(minutes=self.seq)


def cut(*messages: FakeMessage, **rules) -> list[tuple[int, int, int, str]]:
    return [
        (turn.first_seq, turn.last_seq, turn.part, turn.text)
        for turn in chunk_messages(messages, ChunkingRules(**rules))
    ]


def test_each_speaker_has_a_turn():
    reply = FakeMessage(2, "The platform team owns it, as far as I know.", "assistant", "Assistant")
    assert [turn[:3] for turn in cut(FakeMessage(1, LONG), reply)] == [(1, 1, 0), (2, 2, 0)]


def test_consecutive_messages_of_one_speaker_are_one_turn():
    assert cut(FakeMessage(1, LONG), FakeMessage(2, LONG)) == [(1, 2, 0, f"{LONG}\n{LONG}")]


def test_a_message_of_another_day_is_a_turn_of_its_own():
    day = 24 * 60
    turns = cut(FakeMessage(1, LONG), FakeMessage(2 * day, LONG), FakeMessage(2 * day + 1, LONG))
    assert [turn[:2] for turn in turns] == [(1, 1), (2 * day, 2 * day + 1)]


def test_two_people_of_one_role_are_distinguished():
    assert len(cut(FakeMessage(1, LONG), FakeMessage(2, LONG, speaker="Ben"))) == 2


def test_a_message_recorded_in_a_name_is_apart_from_those_of_this_account():
    recorded, own = FakeMessage(1, LONG, author_id=1), FakeMessage(2, LONG, author_id=2)
    assert len(cut(recorded, own)) == 2


def test_merging_can_be_switched_off():
    assert [turn[:2] for turn in cut(FakeMessage(1, LONG), FakeMessage(2, LONG), merge=False)] == [
        (1, 1),
        (2, 2),
    ]


def test_a_role_that_is_not_indexed_ends_a_turn():
    tool = FakeMessage(2, "rows: 17, and so on and so forth", "tool", "")
    assert [turn[:2] for turn in cut(FakeMessage(1, LONG), tool, FakeMessage(3, LONG))] == [
        (1, 1),
        (3, 3),
    ]


def test_a_trivial_message_is_left_out_and_still_ends_the_other_speakers_turn():
    nod = FakeMessage(2, "Fine.", "assistant", "Assistant")
    assert [turn[:2] for turn in cut(FakeMessage(1, LONG), nod, FakeMessage(3, LONG))] == [
        (1, 1),
        (3, 3),
    ]


def test_a_full_turn_is_followed_by_another():
    chunks = cut(*(FakeMessage(seq, LONG) for seq in range(1, 60)))
    assert len(chunks) > 1
    assert all(token_counting.count(turn[3]) <= 256 for turn in chunks)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ok", False),
        ("", False),
        ("   ", False),
        ("Why?", True),
        ("何時？", True),
        ("Deployed it", True),
        ("we shipped", True),
        ("ship", True),
        ("paid", True),
        ("nice ships sail", True),
        ("shipyard", False),
        ("exactly 20 letters!!", True),
    ],
)
def test_a_short_message_is_kept_if_it_asks_or_speaks_of_a_task(text, expected):
    assert is_indexable(text) is expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("arabic", "اشتر الحليب"),
        ("armenian", "Գնել կաթ"),
        ("basque", "Esnea erosi"),
        ("catalan", "Comprar llet"),
        ("danish", "Køb mælk"),
        ("dutch", "Melk kopen"),
        ("estonian", "Osta piima"),
        ("finnish", "Osta maitoa"),
        ("french", "Réserve le train"),
        ("german", "Kaufe Milch"),
        ("greek", "Πληρωσε το"),
        ("hindi", "दूध खरीदो"),
        ("hungarian", "Vegyél tejet"),
        ("indonesian", "Beli susu"),
        ("irish", "Ceannaigh é"),
        ("italian", "Compra il latte"),
        ("lithuanian", "Nupirk pieno"),
        ("nepali", "दूध किन"),
        ("norwegian", "Kjøp melk"),
        ("portuguese", "Compra leite"),
        ("romanian", "Cumpără lapte"),
        ("russian", "Купи молоко"),
        ("serbian", "Kupi mleko"),
        ("serbian", "Купи млеко"),
        ("spanish", "Compra leche"),
        ("swedish", "Köp mjölk"),
        ("tamil", "பால் வாங்கு"),
        ("turkish", "İptal et"),
        ("yiddish", "קויף מילך"),
        ("german", "Ship it"),
        ("simple", "Купи молоко"),
        ("simple", "Kaufe Milch"),
    ],
)
def test_verbs_of_tasks_count_in_each_language(language, text):
    assert is_indexable(text, ChunkingRules(language=language))
    assert len(text) < 20


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("german", "Alles klar"),
        ("french", "D'accord"),
        ("spanish", "para ti"),
        ("russian", "хорошо"),
        ("turkish", "tamam"),
        ("english", "Kaufe Milch"),
    ],
)
def test_a_short_message_without_a_verb_is_left_out_in_each_language(language, text):
    assert not is_indexable(text, ChunkingRules(language=language))


@pytest.mark.django_db
def test_every_language_of_search_has_its_verbs():
    languages = set(search_languages()) - {"simple"}
    assert len(languages) >= 28
    english = task_words("english")
    for language in languages - {"english"}:
        own = task_words(language)
        assert len(own.words) + len(own.beginnings) > len(english.words) + 25, language


def test_a_project_chooses_roles_and_the_shortest_message():
    reply = FakeMessage(2, "The platform team owns it.", "assistant", "Assistant")
    messages = (FakeMessage(1, LONG), reply, FakeMessage(3, LONG))
    only_people = cut(*messages, roles=frozenset({"user"}))
    assert [turn[:2] for turn in only_people] == [(1, 1), (3, 3)]
    assert cut(*messages, roles=frozenset({"assistant"})) == [(2, 2, 0, reply.text)]
    assert [turn[:2] for turn in cut(*messages, min_chars=30)] == [(1, 1), (3, 3)]
    assert cut(FakeMessage(1, "ok"), min_chars=0) == [(1, 1, 0, "ok")]


def test_a_long_message_is_split_at_sentence_ends():
    text = " ".join(f"Sentence number {number} says a little." for number in range(120))
    parts = cut(FakeMessage(1, text))
    assert [part[2] for part in parts] == list(range(len(parts)))
    assert len(parts) > 1
    assert all(part[3].endswith(".") and token_counting.count(part[3]) <= 256 for part in parts)


words = st.text(alphabet="abc .!?\n你é", max_size=300)
conversations = st.lists(
    st.tuples(words, st.sampled_from(["user", "assistant", "tool"]), st.sampled_from("AB")),
    max_size=25,
).map(
    lambda message: [
        FakeMessage(seq, text, role, username)
        for seq, (text, role, username) in enumerate(message, start=1)
    ]
)
rules = st.builds(ChunkingRules, merge=st.booleans(), max_tokens=st.integers(20, 60))


@given(conversations, rules)
def test_turns_are_in_order_and_disjoint_and_fit(messages, rules):
    chunks = list(chunk_messages(messages, rules))
    places = [(turn.first_seq, turn.part) for turn in chunks]
    assert places == sorted(set(places))
    for before, after in zip(chunks, chunks[1:], strict=False):
        assert before.last_seq < after.first_seq or before.first_seq == after.first_seq
    assert all(token_counting.count(turn.text) <= rules.max_tokens for turn in chunks)


@given(conversations, rules)
def test_nothing_that_is_worth_keeping_is_lost(messages, rules):
    chunks = list(chunk_messages(messages, rules))
    for message in messages:
        is_kept = message.role in INDEXED_ROLES and is_indexable(message.text, rules)
        holding = [turn for turn in chunks if turn.first_seq <= message.seq <= turn.last_seq]
        if is_kept:
            assert {turn.speaker for turn in holding} == {message.speaker}
            text = "".join("".join(turn.text.split()) for turn in holding)
            assert "".join(message.text.split()) in text


@given(conversations, rules)
def test_chunking_from_the_start_of_any_turn_gives_the_same_rest(messages, rules):
    chunks = list(chunk_messages(messages, rules))
    for number, turn in enumerate(chunks):
        if turn.part == 0:
            rest = [message for message in messages if message.seq >= turn.first_seq]
            assert list(chunk_messages(rest, rules)) == chunks[number:]


@given(st.text(max_size=600), st.integers(8, 50))
def test_a_split_loses_nothing_but_white_space(text, most):
    parts = list(split_text(text, most))
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_tokens_of_texts_that_a_space_joins_add_up(first, second):
    first, second = first.strip(), second.strip()
    joined = token_counting.count(f"{first} {second}")
    assert not first or joined == token_counting.count(first) + token_counting.count(f" {second}")


@given(st.lists(st.text("ab1-é漢🦄 ", min_size=1, max_size=40), min_size=2), st.integers(8, 50))
def test_each_part_is_as_long_as_possible(words, most):
    sentences = [f"{word.strip()}." for word in words]
    parts = list(split_text("\n".join(sentences), most))
    for part, after in zip(parts, parts[1:], strict=False):
        next_sentence = re.split(r"(?<=[.]) ", after)[0]
        assert token_counting.count(f"{part} {next_sentence}") > most
