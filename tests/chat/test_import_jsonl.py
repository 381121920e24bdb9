"""One message a line: what is read, what is refused, and what stays the same between exports."""

import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.importers import (
    FileResult,
    ImportRejectedError,
    import_file,
    jsonl,
    source_key_for,
    storable,
)
from chat.importers.base import ImportedSession
from chat.models import Message, Session
from tests.chat.exports import document

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)


def line(**fields) -> bytes:
    whole = {"session": "s", "role": "user", "content": "Hi", "created_at": "2025-03-03T12:00:00Z"}
    return json.dumps(whole | fields).encode() + b"\n"


def read(*lines: bytes) -> tuple[list[ImportedSession], FileResult]:
    result = FileResult()
    return list(jsonl.sessions(document(io.BytesIO(b"".join(lines))), result)), result


def reasons(*lines: bytes) -> list[str]:
    """Why lines are refused; a good one stands before them, so that the file is not."""
    return read(line(), *lines)[1].errors


def texts(session: ImportedSession) -> list[str]:
    return [message.text for message in session.messages]


def test_interleaved_conversations_are_separated():
    sessions, result = read(
        line(session="a", content="1"),
        line(session="b", content="2"),
        line(session="a", content="3", role="assistant"),
    )
    assert {chat_session.key: texts(chat_session) for chat_session in sessions} == {
        "a": ["1", "3"],
        "b": ["2"],
    }
    assert [message.role for message in sessions[0].messages] == ["user", "assistant"]
    assert result.errors == []


def test_messages_stand_in_the_order_of_their_times_and_then_of_the_file():
    [session], _ = read(
        line(content="later", created_at="2025-03-03T12:00:01Z"),
        line(content="first"),
        line(content="second"),
    )
    assert texts(session) == ["first", "second", "later"]


def test_a_byte_order_mark_and_blank_lines_are_passed_over():
    [session], result = read(b"\xef\xbb\xbf", line(content="A"), b"\n", b" \r\n", line(content="B"))
    assert texts(session) == ["A", "B"]
    assert result.errors == []


def test_the_last_line_needs_no_end():
    [session], _ = read(line(content="A"), line(content="B").rstrip())
    assert texts(session) == ["A", "B"]


@pytest.mark.parametrize(
    "written",
    [
        "2025-03-03T12:00:00Z",
        "2025-03-03T12:00:00",
        "2025-03-03 12:00",
        "2025-03-03T14:00:00+02:00",
        1741003200,
        1741003200.0,
        1741003200000,
    ],
)
def test_times_are_taken_with_zone_without_and_as_numbers(written):
    assert jsonl.parse_time(written) == NOON
    assert jsonl.parse_time(written).tzinfo is UTC


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b'{"session": "s", \n', "It is not JSON."),
        (b"[" * 100_000 + b"\n", "It is not JSON."),
        (b'["s", "user"]\n', "It is not a JSON object."),
        (b'{"session": "caf\xe9"}\n', "It is not UTF-8."),
        (line(role="robot"), "The role is not one of the following: user, assistant, system, tool"),
        (
            line(role=["user"]),
            "The role is not one of the following: user, assistant, system, tool",
        ),
        (line(session=None), "There is no session."),
        (line(session=True), "There is no session."),
        (line(session=" "), "There is no session."),
        (line(content=None), "There is no content."),
        (line(content=" "), "There is no content."),
        (line(content=["Hi"]), "There is no content."),
        (line(author=7), "The author is not a text."),
        (line(created_at=None), "There is no time in created_at."),
        (line(created_at=True), "There is no time in created_at."),
        (line(created_at="yesterday"), "The time in created_at cannot be read."),
        (line(created_at="0001-01-01T00:00:00+05:00"), "The time in created_at cannot be read."),
        (line(created_at=1e300), "The time in created_at cannot be read."),
        (line(created_at=float("nan")), "The time in created_at cannot be read."),
    ],
)
def test_a_damaged_line_costs_only_itself(damaged, reason):
    [session], result = read(line(content="before"), damaged, line(content="after"))
    assert texts(session) == ["before", "after"]
    assert result.errors == [f"Line 2: {reason}"]


def test_a_line_without_end_is_refused_and_passed_over(monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 2**20)
    [session], result = read(line(content="x" * 3 * 2**20), line(content="after"))
    assert texts(session) == ["after"]
    assert result.errors == ["Line 1: It is longer than 1 MB."]


def test_the_first_hundred_reasons_are_kept_and_all_are_counted():
    _, result = read(line(), b"nonsense\n" * 250)
    assert len(result.errors) == 100
    assert result.errors[-1] == "Line 101: It is not JSON."
    assert result.refused == 250


def test_blank_lines_count_in_the_numbers():
    assert reasons(b"\n", b"\n", b"nonsense\n") == ["Line 4: It is not JSON."]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"nonsense\n"])
def test_a_file_without_any_message_is_refused(content):
    with pytest.raises(ImportRejectedError, match="no line that is a message"):
        read(content)


def test_a_message_keeps_its_key_in_a_longer_export():
    [short], _ = read(line(content="1"), line(content="2"))
    [longer], _ = read(line(content="0"), line(content="1"), line(content="2"), line(content="3"))
    assert [message.key for message in longer.messages][1:3] == [
        message.key for message in short.messages
    ]


def test_equal_messages_at_the_same_instant_have_keys_of_their_own():
    [session], _ = read(line(), line(), line())
    assert len({message.key for message in session.messages}) == 3


def test_the_same_instant_written_otherwise_is_the_same_message():
    [first_item], _ = read(line(created_at=1741003200))
    [other], _ = read(line(created_at="2025-03-03T14:00:00+02:00"))
    assert first_item.messages == other.messages


def test_a_number_names_a_session_like_its_text():
    sessions, _ = read(line(session=7), line(session="7"))
    assert [chat_session.key for chat_session in sessions] == ["7"]


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("talk.txt", line(), True),
        ("talk.txt", line().rstrip(), True),
        ("talk.txt", b"damaged\n" + line(), True),
        ("talk.jsonl", line(content="x" * 70_000)[:65_536], True),
        ("talk.json", b'{"speaker_a": "A", "session_1": []}', False),
        ("talk.json", b'[{"mapping": {}}]', False),
        ("talk.txt", b"", False),
    ],
)
def test_the_format_is_recognised_by_its_content(name, head, expected):
    assert jsonl.recognises(name, head) is expected


@given(st.text(alphabet=st.characters(), max_size=400))
def test_any_text_becomes_storable(text):
    assert "\0" not in storable(text)
    storable(text).encode()
    assert len(source_key_for(text)) <= 300


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just([])
ROLES = VALUES | st.sampled_from(["user", "assistant"])


@given(st.builds(line, session=VALUES, role=ROLES, content=VALUES, created_at=VALUES))
def test_any_line_is_read_or_refused_with_a_reason(written):
    try:
        session, message = jsonl.parse(written)
    except jsonl.InvalidItemError as reason:
        assert str(reason)
    else:
        assert session.strip() and message.text.strip() and message.at.tzinfo is UTC


@pytest.mark.django_db
def test_characters_that_postgresql_cannot_store_are_left_out(project, owner):
    content = line(session="s\0", content="a\0b\ud800c", author="Ann\0")
    import_file(project, owner, "x.jsonl", io.BytesIO(content))
    message = Message.objects.get()
    assert (message.text, message.author_name) == ("ab\ufffdc", "Ann")
    assert Session.objects.get().source_key == "jsonl:s"


@pytest.mark.django_db
def test_a_longer_export_adds_only_what_is_new(project, owner):
    talk = [line(content="1"), line(content="2")]
    import_file(project, owner, "old.jsonl", io.BytesIO(b"".join(talk)))
    talk.append(line(content="3", created_at="2025-03-04T08:00:00Z"))
    result = import_file(project, owner, "new.jsonl", io.BytesIO(b"".join(talk)))
    assert (result.sessions, result.imported, result.skipped) == (1, 1, 2)
    session = Session.objects.get()
    assert list(session.messages.values_list("seq", "text")) == [(1, "1"), (2, "2"), (3, "3")]
    assert session.last_activity_at == datetime(2025, 3, 4, 8, tzinfo=UTC)
