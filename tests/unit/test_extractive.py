from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.layers.lines import as_text
from memory.layers.model_calls import CallRecorder
from memory.layers.summarising import extractive
from memory.layers.summarising.base import DigestChild
from memory.layers.summarising.extractive import ExtractiveSummariser
from memory.layers.summarising.transcript import TranscriptLine, count_words
from memory.leases import Lease
from memory.models import Cursor

NOBODY = CallRecorder(Lease(Cursor, UUID(int=3), UUID(int=1), UUID(int=2)), UUID(int=3))
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def conversation(lines: Sequence[TranscriptLine]) -> str:
    return as_text(extractive.conversation(lines))


def talk(*lines: tuple[str, str]) -> list[TranscriptLine]:
    """Lines of people; those of `Bot` are the assistant's."""
    return [
        TranscriptLine(speaker, text, NOON, "assistant" if speaker == "Bot" else "user")
        for speaker, text in lines
    ]


PROJECT_TALK = talk(
    ("Ana", "Hi Ben! How are you?"),
    ("Bot", "Hello! PostgreSQL 18 came out on 25 September 2025 and AWS bills $400 for it."),
    ("Ana", "The cutover is on 3 March and the platform team owns it."),
    ("Ben", "ok"),
    ("Ben", "We decided to keep PgBouncer in transaction mode, see INFRA-2231."),
    ("Ana", "Open question: who pages on the night of the 3rd?"),
    ("Ben", "Thanks, talk to you later!"),
)


def test_decisions_facts_and_open_questions_are_quoted_the_best_first():
    assert conversation(PROJECT_TALK) == (
        "- Ben: “We decided to keep PgBouncer in transaction mode, see INFRA-2231.”\n"
        "- Ana: “The cutover is on 3 March and the platform team owns it.”\n"
        "- Ana: “Open question: who pages on the night of the 3rd?”"
    )


def test_events_come_before_feelings_about_them():
    news, feeling = (
        "I joined the climbing club in Graz last week.",
        "Climbing in Graz is wonderful.",
    )
    lines = extractive.conversation(talk(("Ana", feeling), ("Ben", "Nice!"), ("Ana", news)))
    assert [line.text for line in lines][0] == news
    assert [line.score for line in lines] == sorted((line.score for line in lines), reverse=True)


def test_a_long_conversation_has_more_lines_and_sixteen_at_most():
    statements = [f"Server{n} in rack{n} runs database{n} of team{n}." for n in range(120)]
    for messages, count in ((6, 3), (30, 5), (120, 16)):
        lines = extractive.conversation(talk(*(("Ana", text) for text in statements[:messages])))
        assert len(lines) == count


def test_with_an_assistant_every_message_of_a_person_can_have_a_line():
    facts = [f"Server{n} in rack{n} runs database{n} of team{n}." for n in range(8)]
    lines = talk(*(row for text in facts for row in (("Ana", text), ("Bot", "Noted!"))))
    assert len(extractive.conversation(lines)) == 8


@pytest.mark.parametrize(
    ("brief", "outcome"),
    [
        (
            "Let's work on the plan for the yearly conference in Leipzig.",
            "The library in Leipzig has confirmed the rooms for the conference.",
        ),
        (
            "Ich brauche einen Text für die jährliche Tagung in Leipzig.",
            "Die Bibliothek in Leipzig hat der Tagung gestern zugesagt.",
        ),
        ("Which caterer is best? We compared three caterers.", "We go with Green Kitchen then."),
    ],
)
def test_outcomes_come_before_briefs(brief, outcome):
    lines = extractive.conversation(talk(("Ana", brief), ("Bot", "Sure!"), ("Ana", outcome)))
    assert lines[0].text == outcome


def test_german_dates_count_like_english_ones():
    for dated, other in (
        ("The readings start on Thursday evening.", "The readings start with some music."),
        ("Die Lesungen beginnen am Donnerstag.", "Die Lesungen beginnen mit Musik."),
    ):
        scores = {line.text: line.score for line in extractive.conversation(talk(("Ana", other)))}
        scores |= {line.text: line.score for line in extractive.conversation(talk(("Ana", dated)))}
        assert scores[dated] > scores[other] + 0.5


def test_a_similar_sentence_with_another_number_is_quoted_too():
    rows = ("The north server has 16 cores and 64 GB.", "The south server has 32 cores and 64 GB.")
    assert len(extractive.conversation(talk(*(("Ana", text) for text in rows)))) == 2


def test_long_answers_do_not_displace_the_sentences_of_people():
    babble = ("Bot", "On 3 May 2024 Acme Corp. paid $12,000 to Globex for AB-12 in Vienna. " * 20)
    assert conversation(talk(babble, ("Ana", "My favourite colour is teal."), babble)) == (
        "- Ana: “My favourite colour is teal.”"
    )


def test_the_assistant_is_quoted_if_no_person_wrote():
    summary = conversation(talk(("Ana", "hi"), ("Bot", "The cutover is on 3 March at 22:00 UTC.")))
    assert summary == "- Bot: “The cutover is on 3 March at 22:00 UTC.”"


def test_a_line_has_its_message_and_its_day():
    source = TranscriptLine("Ana", "The cutover is on 3 March.", NOON, id=UUID(int=7))
    [line] = extractive.conversation([source])
    assert (line.sources, line.day, line.speaker) == ((UUID(int=7),), NOON.date(), "Ana")
    assert line.score > 1


def test_a_repeated_sentence_is_quoted_once():
    fact = "The cutover is on 3 March and the platform team owns it."
    assert conversation(talk(("Ana", fact), ("Ben", fact + "!"))).count("cutover") == 1


def test_a_greeting_alone_is_still_remembered():
    assert conversation(talk(("Ana", "Hello!"), ("Ben", "hi"))) != ""


@pytest.mark.parametrize("text", ["", " \n", "…", "```\n```", "| a |", "#", "\u200d"])
def test_any_line_gives_a_summary(text):
    assert conversation(talk(("Ana", text))).startswith("- Ana: “")


def test_no_lines_have_no_summary():
    assert conversation([]) == ""


def test_other_languages_are_read_too():
    german = conversation(
        talk(("Jo", "Hallo! Wir haben beschlossen, am 14. April nach Graz zu ziehen. Alles gut?"))
    )
    assert german == "- Jo: “Wir haben beschlossen, am 14. April nach Graz zu ziehen.”"
    japanese = conversation(talk(("田中", "おはようございます。移行は三月三日に決まりました。")))
    assert japanese == "- 田中: “移行は三月三日に決まりました。”"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Ana", "Ben", "Bot"]), st.text(max_size=300) | st.just("word " * 500)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_summary_keeps_to_its_lines_and_words(lines):
    summary = extractive.conversation(talk(*lines))
    assert 1 <= len(summary) <= 3
    assert all(count_words(line.text) <= 41 for line in summary)


def test_the_summariser_is_what_summarising_expects():
    summariser = ExtractiveSummariser()
    assert summariser.name == "extractive"
    assert summariser.conversation(PROJECT_TALK, "before", NOBODY).lines
    children = [DigestChild("2 Mar 2026", extractive.conversation(PROJECT_TALK))] * 2
    written = summariser.digest("Week 10", children, NOBODY)
    assert written.lines == extractive.conversation(PROJECT_TALK)
    assert written.audit.held >= len(written.audit.missing)


def test_a_plain_statement_of_a_person_comes_before_the_assistants_assent():
    summary = conversation(
        [
            TranscriptLine(
                "Ana", "The read replica stays after the cutover for the exports.", NOON
            ),
            TranscriptLine(
                "Assistant", "Understood, I will take that into account.", NOON, "assistant"
            ),
        ]
    )
    assert summary == "- Ana: “The read replica stays after the cutover for the exports.”"
