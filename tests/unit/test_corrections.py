"""A statement that is corrected later in the conversation is quoted with its correction."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory.layers.summarising import extractive
from memory.layers.summarising.salience import particulars
from memory.layers.summarising.transcript import TranscriptLine

DAY = datetime(2026, 8, 17, 9, tzinfo=UTC)


def quoted(*lines: tuple[str, str]) -> list[str]:
    return [line.shown for line in summary(*lines)]


def summary(*lines: tuple[str, str]):
    return extractive.conversation(
        [
            TranscriptLine(
                speaker,
                text,
                DAY + timedelta(days=place),
                "assistant" if speaker == "Bot" else "user",
                UUID(int=place + 1),
            )
            for place, (speaker, text) in enumerate(lines)
        ]
    )


@pytest.mark.parametrize(
    ("statement", "correction"),
    [
        ("The review of the contract is on Monday at 10.", "No, actually it's Tuesday."),
        (
            "We agreed on Sunday 6 September at 22:00 for the cutover.",
            "Hm no wait, it's not 6 September. We moved the cutover to Sunday 13 September.",
        ),
        (
            "Die Einreichungsfrist ist der 30. September für alle.",
            "Nein warte, die Frist ist der 25. September, sonst wird es knapp.",
        ),
        (
            "We took the hotel from 6 to 10 April for 620 euros.",
            "Actually no, it's five nights until the 11th and 760 euros in total.",
        ),
        (
            "Le contrat avec le traiteur commence lundi 4 mai.",
            "Non, le contrat commence mardi 5 mai.",
        ),
    ],
)
def test_both_are_in_one_line(statement, correction):
    lines = summary(("Ana", statement), ("Bot", "Noted!"), ("Ana", correction))
    [line] = [it for it in lines if statement[:20] in it.text]
    assert line.text.endswith(f" … {correction}")
    assert line.sources == (UUID(int=1), UUID(int=3))
    # Relative days in the statement are counted from its day.
    assert line.day == DAY.date()
    assert sum(correction[-15:] in it.text for it in lines) == 1


def test_the_next_sentence_can_correct_a_place():
    text = "Die Feier ist am 11. Dezember im Ratskeller. Nee, der ist voll, wir gehen ins Da Enzo."
    assert quoted(("Ana", text)) == [f"Ana: “{text.replace('. Nee', '. … Nee')}”"]
    text = "The library wants Apple Pay in the app. No card at launch, said the manager in Vienna."
    assert not [line for line in quoted(("Ana", text)) if "…" in line]


def test_the_correction_of_another_person_is_quoted_too():
    assert quoted(
        ("Ana", "The review of the contract is on Monday at 10."), ("Ben", "No, it's Tuesday at 9.")
    ) == [
        "Ana: “The review of the contract is on Monday at 10.”",
        "Ben: “No, it's Tuesday at 9.”",
    ]


def test_a_joined_line_ends_with_the_correction():
    statement = (
        "We agreed with the lawyer of the landlord that the review of the contract takes place on "
        "Monday."
    )
    correction = (
        "No wait, the review of the contract with that lawyer is not on Monday but takes place "
        "only on the following Thursday."
    )
    [line] = [text for text in quoted(("Ana", statement), ("Ana", correction)) if "…" in text]
    assert line.endswith("on the following Thursday.”")


def test_a_long_correction_is_quoted_once():
    correction = (
        "No, the review of the contract is on Tuesday at 9 because the lawyer of the other side "
        "travels to Vienna on 7 May and cannot join us before 12:30 anyway."
    )
    statement = ("Ana", "The review of the contract is on Monday at 10.")
    assert quoted(statement, ("Ben", correction)) == [
        f"Ben: “{correction}”",
        "Ana: “The review of the contract is on Monday at 10.”",
    ]
    [line] = quoted(statement, ("Ana", correction))
    assert line.endswith("because the lawyer of the other side travels to Vienna on…”")


@pytest.mark.parametrize(
    "text",
    [
        "Ich meine, dass die Frist der Steuererklärung für Vereine am 30. September endet.",
        "Korrektur der Klausuren aus dem Kurs Statistik ist bis 30. September fällig.",
        "I meant to call the dentist about the invoice of 240 euros on Monday.",
        "Erreur 500 sur le serveur de paiement depuis lundi matin à 9:30 chez Nexa.",
    ],
)
def test_a_statement_about_something_else_is_no_correction(text):
    rows = (("Ana", "The party at the town hall is on 3 May."), ("Bot", "Nice."), ("Ana", text))
    assert f"Ana: “{text}”" in quoted(*rows)


def test_days_and_numbers_are_read_at_the_beginning_of_a_long_sentence():
    # One pattern for dates takes seconds for the megabytes of a few pasted messages.
    assert particulars("Monday 4 " + "a " * 1_000 + "Tuesday 5") == ({"monday"}, {"4"})


def test_an_answer_that_begins_with_no_is_no_correction():
    rows = (
        ("Ana", "The partner key of the importer had a limit of 100 requests on Monday."),
        ("Bot", "Was the column filled?"),
        ("Ana", "No, the migration ran only on staging, so I filled the column at 9:30."),
    )
    assert not [text for text in quoted(*rows) if "…" in text]


def test_a_correction_of_the_assistant_stays_a_statement():
    rows = (("Bot", "The cluster has 60 sensors."), ("Ana", "No, the cluster has 48 sensors."))
    assert quoted(*rows) == ["Ana: “The cluster has 48 sensors.”"]


def test_many_corrections_take_linear_time():
    text = " ".join(f"No, it's {n} May." for n in range(5_000))
    assert quoted(("Ana", "The review is on Monday 4 May."), ("Ana", text))
