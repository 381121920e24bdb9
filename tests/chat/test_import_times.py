"""Imports reject times before 1970 and after tomorrow."""

import io
import json
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from chat.importers import import_file
from chat.importers.base import (
    ImportedMessage,
    first_plausible,
    plausible_time,
    with_plausible_times,
)
from chat.models import Message, Session
from tests.chat.exports import BEGAN, CLAUDE, OPENWEBUI, chatgpt_message, file_of, node
from tests.chat.test_import_locomo import TALK

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)
BEGUN = datetime.fromtimestamp(BEGAN, UTC)
LONG_AGO = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
FAR_OFF = datetime(9999, 12, 31, tzinfo=UTC)


def times(*message: datetime, begun: datetime | None = None) -> list[datetime]:
    messages = [ImportedMessage(str(place), "user", "Hi", at) for place, at in enumerate(message)]
    return [message.at for message in with_plausible_times(messages, begun)]


def test_the_bounds_are_1970_and_tomorrow():
    now = timezone.now()
    first = datetime(1970, 1, 1, tzinfo=UTC)
    assert plausible_time(first) == first
    assert plausible_time(now + timedelta(hours=23)) is not None
    for at in (None, LONG_AGO, now + timedelta(hours=25), FAR_OFF):
        assert plausible_time(at) is None


def test_a_time_that_cannot_be_is_that_of_the_message_before():
    later = NOON + timedelta(hours=1)
    assert times(NOON, FAR_OFF, later, LONG_AGO) == [NOON, NOON, later, later]


def test_the_first_has_the_time_of_the_conversation_or_of_its_earliest_message():
    begun = NOON - timedelta(hours=1)
    assert times(FAR_OFF, NOON, begun=begun) == [begun, NOON]
    assert times(LONG_AGO, NOON, NOON - timedelta(minutes=1))[0] == NOON - timedelta(minutes=1)


def test_where_no_time_can_be_it_is_now():
    [first, second] = times(FAR_OFF, LONG_AGO, begun=FAR_OFF)
    assert first == second
    assert abs(first - timezone.now()) < timedelta(minutes=1)
    assert abs(first_plausible(None, FAR_OFF) - timezone.now()) < timedelta(minutes=1)


def test_times_that_run_backward_stay_as_they_are():
    earlier = NOON - timedelta(hours=1)
    assert times(NOON, earlier, NOON) == [NOON, earlier, NOON]


def jsonl(*message: tuple[str, object]) -> io.BytesIO:
    lines = (
        {"session": "s", "role": "user", "content": text, "created_at": at} for text, at in message
    )
    return io.BytesIO("\n".join(map(json.dumps, lines)).encode())


@pytest.mark.django_db
def test_lines_keep_their_place_and_a_second_import_adds_nothing(project, owner):
    talk = [
        ("1", "2025-03-03T12:00:00Z"),
        ("2", "1900-01-01T00:00:00Z"),
        ("3", "2025-03-03T13:00:00Z"),
        ("4", "9000-01-01T00:00:00Z"),
        ("5", "2025-03-03T14:00:00Z"),
    ]
    assert import_file(project, owner, "x.jsonl", jsonl(*talk)).refused == 0
    messages = Message.objects.order_by("seq")
    assert [message.text for message in messages] == ["1", "2", "3", "4", "5"]
    assert [message.created_at.hour for message in messages] == [12, 12, 13, 13, 14]
    repeated_import = import_file(project, owner, "x.jsonl", jsonl(*talk))
    assert (repeated_import.imported, repeated_import.skipped) == (0, 5)


def chatgpt() -> io.BytesIO:
    mapping = {
        "a": node(None, chatgpt_message("user", "A", at=-5e9)),
        "b": node("a", chatgpt_message("assistant", "B", at=BEGAN + 60)),
        "c": node("b", chatgpt_message("user", "C", at=9e10)),
        "d": node("c", chatgpt_message("assistant", "D", at=BEGAN + 90)),
    }
    return file_of(
        {
            "id": "c",
            "title": "T",
            "create_time": BEGAN,
            "mapping": mapping,
            "current_node": "d",
        }
    )


@pytest.mark.django_db
def test_nodes_of_a_tree_have_the_time_of_the_one_above(project, owner):
    import_file(project, owner, "conversations.json", chatgpt())
    messages = Message.objects.order_by("seq")
    assert [(it.text, (it.created_at - BEGUN).total_seconds()) for it in messages] == [
        ("A", 0),
        ("B", 60),
        ("C", 60),
        ("D", 90),
    ]


def claude() -> io.BytesIO:
    whole = deepcopy(CLAUDE)
    whole["chat_messages"][1]["created_at"] = "9999-01-01T00:00:00Z"
    return file_of(whole)


def openwebui() -> io.BytesIO:
    whole = deepcopy(OPENWEBUI)
    whole["created_at"] = whole["chat"]["timestamp"] = -1e10
    whole["chat"]["history"]["messages"]["q"]["timestamp"] = -1e10
    return file_of(whole)


def locomo() -> io.BytesIO:
    return io.BytesIO(json.dumps(TALK | {"session_1_date_time": "1:56 pm on 8 May, 1023"}).encode())


@pytest.mark.django_db
@pytest.mark.parametrize("build", [jsonl, chatgpt, claude, openwebui, locomo])
def test_no_format_brings_a_time_that_cannot_be(project, owner, build: Callable):
    file = build(("1", "9000-01-01T00:00:00Z")) if build is jsonl else build()
    result = import_file(project, owner, "talk.json", file)
    assert result.imported > 0
    assert result.refused == 0
    tomorrow = timezone.now() + timedelta(days=1)
    for rows in (Message.objects.all(), Session.objects.all()):
        assert not rows.exclude(created_at__range=(datetime(1970, 1, 1, tzinfo=UTC), tomorrow))
    assert not Session.objects.filter(last_activity_at__gt=tomorrow).exists()
