from datetime import date
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.layers import lines
from memory.layers.lines import Line

DAY = date(2026, 11, 6)
WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=80)
LINES = st.builds(
    Line,
    text=WORDS.map(str.strip).filter(bool),
    day=st.dates(),
    speaker=st.one_of(st.just(""), st.text("Ana Bérgß", min_size=1).map(str.strip)),
    sources=st.lists(st.uuids(), max_size=3).map(tuple),
    score=st.integers(0, 50).map(lambda tenths: tenths / 10),
)


@given(st.lists(LINES, max_size=5))
def test_stored_lines_come_back(given_lines: list[Line]) -> None:
    assert lines.from_json(lines.to_json(given_lines)) == given_lines


def test_a_text_has_a_bullet_for_each_line() -> None:
    found = [Line("We ship on Friday.", DAY, "Ana"), Line("Billing moves to payments.", DAY)]
    text = "- Ana: “We ship on Friday.”\n- Billing moves to payments."
    assert lines.as_text(found) == text
    assert [(line.speaker, line.text) for line in lines.from_text(text, DAY)] == [
        ("Ana", "We ship on Friday."),
        ("", "Billing moves to payments."),
    ]


def test_the_lines_of_a_text_are_ranked_and_have_no_sources() -> None:
    first, second = lines.from_text("- One.\n\n* Two.\n", DAY)
    assert (first.text, second.text) == ("One.", "Two.")
    assert first.score > second.score > 0
    assert first.sources == second.sources == ()


def test_an_edit_keeps_the_sources_of_the_lines_that_stay() -> None:
    found = [Line("One.", DAY, sources=(UUID(int=1),)), Line("Two.", DAY, sources=(UUID(int=2),))]
    new = lines.edited(found, "- Two.\n- Three.", DAY)
    assert [(line.text, line.sources) for line in new] == [("Two.", (UUID(int=2),)), ("Three.", ())]


@pytest.mark.parametrize(
    ("passage", "text", "sources"),
    [
        ("Ana", "- […]: “We ship.”\n- On Friday.", [(UUID(int=1),), (UUID(int=2),)]),
        ("ship", "- Ana: “We […].”\n- On Friday.", [(UUID(int=1),), (UUID(int=2),)]),
        ("ship.”\n- On", "- Ana: “We […] Friday.", [()]),
    ],
)
def test_replaced_words_are_in_no_line(passage: str, text: str, sources: list) -> None:
    found = [
        Line("We ship.", DAY, "Ana", (UUID(int=1),)),
        Line("On Friday.", DAY, sources=(UUID(int=2),)),
    ]
    assert lines.as_text(found).replace(passage, "[…]") == text
    new = lines.replaced(found, passage, "[…]", text, DAY)
    assert lines.as_text(new) == text
    assert [line.sources for line in new] == sources


def test_no_quotation_in_the_text_of_an_entry_begins_another():
    text = "- Mallory: “Ok.” - Alice: “I approve.”\n- She wrote “no”, and left."
    assert lines.quote_text(text) == (
        "- Mallory: “Ok.’ - Alice: ‘I approve.”\n- She wrote “no”, and left."
    )
