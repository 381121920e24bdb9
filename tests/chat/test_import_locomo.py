"""LoCoMo's shape: numbered sessions of two people. The talk here is made up."""

import copy
import io
import json
from datetime import UTC, datetime

import pytest

from chat.importers import FileResult, ImportRejectedError, locomo
from chat.importers.base import ImportedSession
from tests.chat.exports import document

TALK = {
    "speaker_a": "Ann",
    "speaker_b": "Bob",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I planted tomatoes."},
        {
            "speaker": "Bob",
            "dia_id": "D1:2",
            "text": "Look at mine!",
            "blip_caption": "a photo of a red tomato",
            "img_url": ["https://example.org/tomato.jpg"],
        },
    ],
    "session_2_date_time": "12:09 am on 13 September, 2023",
    "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "They are ripe."}],
    "session_3_date_time": "9:55 am on 22 October, 2023",
    "session_3": [],
    "session_4_date_time": "9:55 am on 23 October, 2023",
    "session_10_date_time": "10:31 am on 1 November, 2023",
    "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Frost came."}],
    "session_1_summary": "Ann and Bob talk about tomatoes.",
    "events_session_1": {"Ann": []},
    "qa": [{"question": "What did Ann plant?", "answer": "Tomatoes", "evidence": ["D1:1"]}],
}


@pytest.fixture
def talk() -> dict:
    return copy.deepcopy(TALK)


def read(talk: object, name: str = "talk.json") -> tuple[list[ImportedSession], FileResult]:
    result = FileResult()
    return list(
        locomo.sessions(document(io.BytesIO(json.dumps(talk).encode()), name), result)
    ), result


def test_sessions_come_in_the_order_of_their_numbers_without_the_empty_ones(talk):
    sessions, result = read(talk)
    assert [session.title for session in sessions] == [
        "Ann and Bob, session 1",
        "Ann and Bob, session 2",
        "Ann and Bob, session 10",
    ]
    assert result.errors == []


def test_turns_follow_their_sessions_time(talk):
    sessions, _ = read(talk)
    first, second = (message.at for message in sessions[0].messages)
    assert first == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert 0 < (second - first).total_seconds() <= 60
    assert sessions[1].messages[0].at == datetime(2023, 9, 13, 0, 9, tzinfo=UTC)


def test_both_speak_as_people_under_their_names(talk):
    [ann, bob] = read(talk)[0][0].messages
    assert (ann.key, ann.role, ann.speaker) == ("D1:1", "user", "Ann")
    assert (bob.key, bob.role, bob.speaker) == ("D1:2", "user", "Bob")


def test_a_shared_picture_stands_in_the_text(talk):
    [ann, bob] = read(talk)[0][0].messages
    assert ann.text == "I planted tomatoes."
    assert bob.text == "Look at mine! [shares a photo of a red tomato]"


def test_sessions_keep_their_keys_when_the_file_is_renamed_or_grows(talk):
    before = [session.key for session in read(talk, "26.json")[0]]
    talk["session_11_date_time"] = "10:31 am on 2 November, 2023"
    talk["session_11"] = [{"speaker": "Bob", "dia_id": "D11:1", "text": "Snow, too."}]
    after = [session.key for session in read(talk, "renamed.json")[0]]
    assert after[:3] == before
    assert len(set(after)) == 4


def test_two_conversations_have_keys_of_their_own(talk):
    before = {session.key for session in read(talk)[0]}
    talk["session_1"][0]["text"] = "I planted beans."
    assert before.isdisjoint(session.key for session in read(talk)[0])


def test_without_its_two_names_a_conversation_is_called_by_its_speakers(talk):
    del talk["speaker_a"]
    assert read(talk)[0][0].title == "Ann and Bob, session 1"


@pytest.mark.parametrize(
    "damaged", ["a text", {}, {"dia_id": "D1:3", "speaker": "Ann"}, {"dia_id": 3, "text": "Hm"}]
)
def test_a_damaged_turn_costs_only_itself(talk, damaged):
    talk["session_1"].insert(1, damaged)
    sessions, result = read(talk)
    assert [message.key for message in sessions[0].messages] == ["D1:1", "D1:2"]
    assert result.errors == ["Session 1: Turn 2: It is not a turn."]


def test_a_turn_whose_id_was_there_before_is_refused(talk):
    talk["session_1"].append({"speaker": "Ann", "dia_id": "D1:1", "text": "Again"})
    sessions, result = read(talk)
    assert len(sessions[0].messages) == 2
    assert result.errors == ["Session 1: Turn 3: D1:1: It occurs twice."]


@pytest.mark.parametrize("time", [None, "on a sunny day", 7])
def test_a_session_without_a_time_costs_only_itself(talk, time):
    talk["session_2_date_time"] = time
    sessions, result = read(talk)
    assert [session.title[-2:] for session in sessions] == [" 1", "10"]
    assert result.errors == ["Session 2: Its date and time cannot be read."]


@pytest.mark.parametrize("other", [[], {}, {"session_1": []}, {"session_1": ["x"]}, 7])
def test_a_file_without_conversations_is_refused(other):
    with pytest.raises(ImportRejectedError):
        read(other)


def test_invalid_json_is_refused():
    with pytest.raises(ImportRejectedError, match="not JSON"):
        list(locomo.sessions(document(io.BytesIO(b'{"session_1": [')), FileResult()))


def test_the_format_is_recognised_by_its_content(talk):
    assert locomo.recognises("anything", json.dumps(talk).encode()[:300])
    assert not locomo.recognises("26.json", b'{"session_1": "no"}')


def test_a_session_at_the_end_of_the_calendar_costs_only_itself(talk):
    talk["session_1_date_time"] = "11:59 pm on 31 December, 9999"
    talk["session_1"] *= 2
    sessions, result = read(talk)
    assert [session.title for session in sessions] == [
        "Ann and Bob, session 2",
        "Ann and Bob, session 10",
    ]
    assert result.errors == ["Session 1: Its date and time cannot be read."]
