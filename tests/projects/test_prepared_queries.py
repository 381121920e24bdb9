"""Querysets whose SQL is compiled once."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connection
from django.db.models.functions import Now

from chat.conversations.messages import draft, post_message, post_messages
from chat.models import Message, Session
from projects.core.database import PreparedObjects, PreparedQuery
from projects.models import Token

pytestmark = pytest.mark.django_db

FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def session(project, owner):
    return Session.objects.create(project=project, creator=owner)


@pytest.fixture
def calls() -> list[tuple]:
    return []


@pytest.fixture
def messages_by(calls):
    def rows(session: UUID, author: int, before: datetime):
        calls.append((session, author, before))
        messages = Message.objects.filter(session=session, author=author, created_at__lt=before)
        return messages.exclude(text="").order_by("seq").values_list("text", "seq")

    return PreparedQuery(rows, UUID, int, datetime)


def test_the_rows_are_those_of_the_queryset(session, owner, editor, messages_by):
    for author, text in ((owner, "One"), (editor, "Two"), (owner, "100 %")):
        post_message(session, text, author=author)
    assert messages_by(session.pk, owner.pk, FUTURE) == [("One", 1), ("100 %", 3)]
    assert messages_by(session.pk, editor.pk, FUTURE) == [("Two", 2)]
    assert messages_by(session.pk, owner.pk, datetime(2000, 1, 1, tzinfo=UTC)) == []


def test_none_equals_nothing(session, owner, messages_by):
    post_message(session, "One", author=owner)
    assert messages_by(session.pk, None, FUTURE) == []


def test_the_sql_is_compiled_once(session, owner, messages_by, calls, django_assert_num_queries):
    with django_assert_num_queries(3):
        for _ in range(3):
            messages_by(session.pk, owner.pk, FUTURE)
    assert len(calls) == 1


def prepared_statements(part: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s",
            [f"%{part}%"],
        )
        return cursor.fetchone()[0]


def test_postgresql_plans_the_statement_once(session, owner, editor, messages_by):
    for author in (owner, editor):
        messages_by(session.pk, author.pk, FUTURE)
    assert prepared_statements('"text"%FROM%chat_message') == 1


def test_a_plan_for_any_values_is_used_again(session, owner, messages_by):
    """Planning takes longer than running the statement."""
    for _ in range(3):
        messages_by(session.pk, owner.pk, FUTURE)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
            " WHERE statement LIKE '%FROM \"chat_message\"%'"
        )
        assert cursor.fetchall() == [(3, 0)]


def test_behind_a_pooler_nothing_is_prepared(session, owner, messages_by, monkeypatch):
    connection.ensure_connection()
    monkeypatch.setattr(connection.connection, "prepare_threshold", None)
    messages_by(session.pk, owner.pk, FUTURE)
    assert prepared_statements('"text"%FROM%chat_message') == 0


def test_a_constant_may_contain_a_percent_sign_and_a_quote(session, owner):
    def rows(session: UUID):
        return Message.objects.filter(session=session, text="100 % 'sure'").values_list("seq")

    for text in ("100 % 'sure'", "100 %"):
        post_message(session, text, author=owner)
    assert PreparedQuery(rows, UUID)(session.pk) == [(1,)]


def test_objects_are_those_of_the_queryset(session, owner, project, django_assert_num_queries):
    def sessions(pk: UUID, title: str):
        found = Session.objects.filter(pk=pk, title=title)
        return found.select_related("project", "creator", "head")

    prepared = PreparedObjects(sessions, UUID, str)
    with django_assert_num_queries(1):
        [loaded] = prepared(session.pk, "")
        assert (loaded.project, loaded.creator, loaded.head) == (project, owner, None)
    expected = Session.objects.get(pk=session.pk)
    assert {name: getattr(loaded, name) for name in vars(expected) if name != "_state"} == {
        name: value for name, value in vars(expected).items() if name != "_state"
    }
    assert prepared(session.pk, "Another") == []


def test_the_columns_of_objects_are_converted(owner):
    token, _secret = Token.issue(owner, scopes=["read"])

    def tokens(pk: str):
        return Token.objects.filter(pk=pk)

    [loaded] = PreparedObjects(tokens, str)(token.pk)
    assert (loaded.scopes, loaded.public_id) == (["read"], token.public_id)
    assert not loaded._state.adding


def test_a_new_message_is_inserted_by_a_prepared_statement(session, owner):
    post_message(session, "One", author=owner)
    assert prepared_statements("INSERT INTO chat_message") > 0


def test_a_prepared_insert_writes_the_same_row_as_the_orm(session, owner):
    drafts = [
        draft(
            "Ünïcode %s",
            author=owner,
            author_name="Ana",
            cost=Decimal("0.25"),
            receipt={"sections": []},
            tool_calls=[{"id": "1"}],
            heartbeat_at=Now(),
        )
        for _ in range(4)
    ]
    post_messages(session, drafts[:1])
    post_messages(session, drafts[1:])
    prepared, *_, by_orm = Message.objects.order_by("seq").values()
    different = {"id", "seq", "parent_id", "created_at", "heartbeat_at"}
    for name in prepared.keys() - different:
        assert prepared[name] == by_orm[name], name
    assert by_orm["heartbeat_at"] - prepared["heartbeat_at"] < timedelta(minutes=1)
