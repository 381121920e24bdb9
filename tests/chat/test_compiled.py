"""Queries whose SQL is worked out once."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from chat.compiled import Compiled
from chat.models import Message
from chat.replies import post_message

pytestmark = pytest.mark.django_db


@pytest.fixture
def made() -> list[tuple]:
    return []


@pytest.fixture
def said_by(made):
    def rows(session: UUID, author: int, before: datetime):
        made.append((session, author, before))
        found = Message.objects.filter(session=session, author=author, created_at__lt=before)
        return found.exclude(text="").order_by("seq").values_list("text", "seq")

    return Compiled(rows, UUID, int, datetime)


def test_it_gives_what_the_queryset_would(session, owner, editor, said_by):
    for author, text in ((owner, "One"), (editor, "Two"), (owner, "100 %")):
        post_message(session, text, author=author)
    future = datetime(2100, 1, 1, tzinfo=UTC)
    assert said_by(session.pk, owner.pk, future) == [("One", 1), ("100 %", 3)]
    assert said_by(session.pk, editor.pk, future) == [("Two", 2)]
    assert said_by(session.pk, owner.pk, datetime(2000, 1, 1, tzinfo=UTC)) == []


def test_nothing_equals_none(session, owner, said_by):
    post_message(session, "One", author=owner)
    assert said_by(session.pk, None, datetime(2100, 1, 1, tzinfo=UTC)) == []


def test_it_is_worked_out_once(session, owner, said_by, made, django_assert_num_queries):
    with django_assert_num_queries(3):
        for _ in range(3):
            said_by(session.pk, owner.pk, datetime(2100, 1, 1, tzinfo=UTC))
    assert len(made) == 1
