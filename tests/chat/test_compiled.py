"""Queries whose SQL is worked out once."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db.models import F

from chat.compiled import Among, Compiled, CompiledObjects, CompiledUpdate
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


def test_objects_come_with_those_selected_along(session, owner, django_assert_num_queries):
    asked = post_message(session, "One", author=owner)
    rows = Message.objects.select_related("author", "parent", "session__project")
    found = CompiledObjects[Message](lambda pk: rows.filter(pk=pk), UUID)
    with django_assert_num_queries(1):
        one = found.first(asked.pk)
        assert one == asked
        assert (one.author, one.parent, one.session.project) == (owner, None, session.project)
    for field in Message._meta.concrete_fields:
        assert getattr(one, field.attname) == getattr(rows.get(pk=asked.pk), field.attname)
    assert found.first(session.pk) is None


def test_an_update_tells_how_many_it_changed(session, owner):
    asked = post_message(session, "One", author=owner)
    change = CompiledUpdate(
        lambda pk, more: (Message.objects.filter(pk=pk), {"tokens": F("tokens") + more}), UUID, int
    )
    before = asked.tokens
    assert [change(asked.pk, 5), change(asked.pk, 7), change(session.pk, 9)] == [1, 1, 0]
    asked.refresh_from_db()
    assert asked.tokens == before + 12


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_is_one_parameter(session, owner, count):
    said = [post_message(session, text, author=owner) for text in ("One", "Two", "Three")]
    rows = Message.objects.order_by("seq").values_list("seq")
    found = Compiled(lambda ids: rows.filter(Among(F("pk"), ids)), list)
    assert found([one.pk for one in said[:count]]) == [(n + 1,) for n in range(count)]
