from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.layers.model_calls import CallRecorder
from memory.layers.summarising.extractive import ExtractiveSummariser, conversation, digest
from memory.layers.summarising.transcript import TranscriptLine, count_words
from memory.leases import Lease
from memory.models import Cursor

NOBODY = CallRecorder(Lease(Cursor, UUID(int=3), UUID(int=1), UUID(int=2)), UUID(int=3))
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


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


def test_facts_decisions_and_open_questions_are_quoted_in_order_of_time():
    assert conversation(PROJECT_TALK) == (
        "- Ana: “The cutover is on 3 March and the platform team owns it.”\n"
        "- Ben: “We decided to keep PgBouncer in transaction mode, see INFRA-2231.”\n"
        "- Ana: “Open question: who pages on the night of the 3rd?”"
    )


def test_an_assistants_babble_does_not_displace_what_a_person_said():
    babble = ("Bot", "On 3 May 2024 Acme Corp. paid $12,000 to Globex for AB-12 in Vienna. " * 20)
    assert conversation(talk(babble, ("Ana", "My favourite colour is teal."), babble)) == (
        "- Ana: “My favourite colour is teal.”"
    )


def test_the_assistant_is_quoted_where_nobody_else_said_anything():
    summary = conversation(talk(("Ana", "hi"), ("Bot", "The cutover is on 3 March at 22:00 UTC.")))
    assert summary == "- Bot: “The cutover is on 3 March at 22:00 UTC.”"


def test_what_is_said_twice_is_quoted_once():
    fact = "The cutover is on 3 March and the platform team owns it."
    assert conversation(talk(("Ana", fact), ("Ben", fact + "!"))).count("cutover") == 1


def test_a_greeting_alone_is_still_remembered():
    assert conversation(talk(("Ana", "Hello!"), ("Ben", "hi"))) != ""


@pytest.mark.parametrize("text", ["", " \n", "…", "```\n```", "| a |", "#", "\u200d"])
def test_something_is_said_of_any_line(text):
    assert conversation(talk(("Ana", text))).startswith("- Ana: “")


def test_no_lines_have_no_summary():
    assert conversation([]) == ""
    assert digest([]) == ""


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
def test_a_summary_keeps_to_its_bullets_and_words(lines):
    summary = conversation(talk(*lines))
    assert 1 <= len(summary.split("\n- ")) <= 3
    assert summary.startswith("- ")
    assert count_words(summary) <= 80


DAYS = [
    ("Mon 2 Mar 2026", "- Ana: “We start the migration on 3 March.”\n- Ben: “I like tea.”"),
    ("Tue 3 Mar 2026", "- Ben: “We decided on PgBouncer, see INFRA-2231.”"),
    ("Wed 4 Mar 2026", "- Ana: “The budget is €12,000 until June.”"),
    ("Thu 5 Mar 2026", "- Cleo: “Vienna hosts the new cluster from Friday on.”"),
    ("Fri 6 Mar 2026", "- Ana: “Nice weather.”"),
]


def test_a_digest_draws_on_the_children_in_order_and_says_when():
    assert digest(DAYS[:2]) == (
        "- Ana: “We start the migration on 3 March.” (Mon 2 Mar 2026)\n"
        "- Ben: “I like tea.” (Mon 2 Mar 2026)\n"
        "- Ben: “We decided on PgBouncer, see INFRA-2231.” (Tue 3 Mar 2026)"
    )


def test_every_child_is_drawn_on_before_any_twice():
    summary = digest(DAYS)
    assert len(summary.splitlines()) == 4
    assert "tea" not in summary


def test_a_bullet_names_its_day_only_once_and_only_where_days_differ():
    first = digest(DAYS)
    summary = digest(
        [("Week 10, 2–8 Mar 2026", first), ("Week 11, 9–15 Mar 2026", "- Ben: “x y.”")]
    )
    assert "(Tue 3 Mar 2026)" in summary and "Week 10" not in summary
    summary_text = digest(
        [("Mon 2 Mar 2026 · Tea", DAYS[0][1]), ("Mon 2 Mar 2026 · Cake", DAYS[1][1])]
    )
    assert "2026" not in summary_text


@given(
    st.lists(
        st.tuples(
            st.text(max_size=20),
            st.lists(st.text(alphabet="ab 漢.“”()1", max_size=120), max_size=4).map("\n- ".join)
            | st.just("- Ana: “" + "word " * 90 + "”"),
        ),
        max_size=12,
    )
)
def test_a_digest_keeps_to_its_bullets_and_words(children):
    summary = digest(children)
    assert bool(summary) == any(summary.strip(" \n-") for _, summary in children)
    assert len(summary.splitlines()) <= 4
    assert count_words(summary) <= 120


def test_long_bullets_still_leave_room_for_two():
    long = "- Ana: “" + " ".join(f"w{n}" for n in range(200)) + "”"
    summary = digest([("Mon 2 Mar 2026", long), ("Tue 3 Mar 2026", long.replace("w", "v"))])
    assert len(summary.splitlines()) == 2
    assert count_words(summary) <= 120


def test_the_summariser_is_what_summarising_expects():
    summariser = ExtractiveSummariser()
    assert summariser.name == "extractive"
    assert summariser.conversation(PROJECT_TALK, "before", NOBODY)
    written = summariser.digest("Week 10", DAYS, NOBODY)
    assert written.text == digest(DAYS)
    assert written.particulars >= len(written.losses)


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
