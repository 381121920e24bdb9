"""Dates and other filters in the words of a question."""

from datetime import date, timedelta

import pytest

from memory.recall.query_parsing import parse_query, remove_names
from memory.recall.relative_days import find_relative_days


def distances(question: str, day: date) -> list[int]:
    return [dates.distance(day) for dates in parse_query(question).dates]


@pytest.mark.parametrize(
    ("question", "day", "expected"),
    [
        ("What happened on 8 May 2023?", date(2023, 5, 8), [0]),
        ("What happened on May 8th, 2023?", date(2023, 5, 10), [2]),
        ("What was decided on 2026-03-02?", date(2026, 3, 1), [-1]),
        ("Where did she go in July?", date(2022, 7, 31), [0]),
        ("Where did she go in July?", date(2022, 8, 2), [2]),
        ("What did he buy in 2022?", date(2022, 1, 1), [0]),
        ("What did he buy in 2022?", date(2023, 1, 1), [1]),
        ("Who came in the winter?", date(2023, 1, 20), [0]),
        ("Who came during the summer?", date(2023, 6, 1), [0]),
        ("What was said on 30 February?", date(2023, 2, 28), [0]),
        ("May I ask what it was?", date(2023, 5, 8), []),
        ("What did she plan in May?", date(2023, 5, 8), [0]),
        ("Was it on 99 March 2023-77-12?", date(2023, 3, 4), [0]),
    ],
)
def test_it_may_name_days(question, day, expected):
    assert distances(question, day) == expected


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Melanie paint?", True),
        ("What did Mel paint?", True),
        ("What is Melanie's hobby?", True),
        ("What did Melba paint?", False),
        ("Me and you?", False),
    ],
)
def test_it_may_name_a_speaker(question, named):
    assert parse_query(question).mentions("Melanie Smith") is named


def test_the_names_of_speakers_are_left_out_of_what_it_is_about():
    assert remove_names("What did Mel paint?", ["Melanie Smith"]) == "What did  paint?"


@pytest.mark.parametrize(("words", "share"), [(1, 0), (15, 0), (27, 0.48), (40, 1), (400, 1)])
def test_a_long_query_is_a_message_that_continues_a_chat(words, share):
    assert parse_query("word " * words).message_share == share


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("I met her yesterday, and we meet again tomorrow.", [date(2024, 2, 29), date(2024, 3, 2)]),
        ("We moved the day before yesterday.", [date(2024, 2, 28)]),
        ("The release was last Friday.", [date(2024, 2, 23)]),
        (
            "They signed two weeks ago, a month ago it was a draft.",
            [date(2024, 2, 16), date(2024, 1, 31)],
        ),
        (
            "Wir haben gestern entschieden, vor 3 Tagen noch nicht.",
            [date(2024, 2, 29), date(2024, 2, 27)],
        ),
        ("Letzten Montag war das Treffen.", [date(2024, 2, 26)]),
        ("Last but not least, it lasts a day.", []),
        ("999 months ago", [date(2024, 3, 1) - timedelta(999 * 30)]),
    ],
)
def test_a_text_may_mention_days_in_relation_to_its_own(text, days):
    friday = date(2024, 3, 1)
    assert list(find_relative_days(text, friday)) == days


@pytest.mark.parametrize("text", ["999 months ago", "last Monday", "yesterday"])
def test_days_before_the_calendar_are_left_out(text):
    assert list(find_relative_days(text, date(1, 1, 1))) == []


@pytest.mark.parametrize("text", ["last winter", "in May"])
def test_dates_are_compared_up_to_the_end_of_the_calendar(text):
    [dates] = parse_query(text).dates
    for day in (date.min, date(9998, 7, 1), date(9999, 1, 1)):
        assert abs(dates.distance(day)) < 366
