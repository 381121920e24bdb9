"""Replies whose receipts name something, for few ids by the index and for many in one pass."""

from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.models import Message, Role, Session
from memory.forgetting.closure import MAX_INDEXED_IDS, replies_naming

pytestmark = pytest.mark.django_db


@pytest.fixture
def reply_naming(project, editor):
    """Store a reply whose receipt names `ids`, each in a section of its own."""
    session = Session.objects.create(project=project, creator=editor)

    def store(*ids: UUID) -> Message:
        items = [[{"kind": "message", "id": str(pk), "revision": 1, "tokens": 9}] for pk in ids]
        sections = [{"name": "history", "tokens": 9, "items": part} for part in items]
        seq = session.messages.count() + 1
        receipt = {"budget": 99, "sections": sections}
        return Message.objects.create(
            project=project, session=session, seq=seq, role=Role.ASSISTANT, receipt=receipt
        )

    return store


def all_messages():
    return Message.objects.order_by()


@pytest.mark.parametrize("count", [1, MAX_INDEXED_IDS, MAX_INDEXED_IDS + 1, 10_000])
def test_replies_that_name_one_of_the_ids_are_found_in_one_query(
    reply_naming, count, django_assert_num_queries
):
    ids = [uuid4() for _ in range(count)]
    exposed = reply_naming(uuid4(), ids[0]), reply_naming(ids[-1], uuid4())
    reply_naming(uuid4()), reply_naming()
    with django_assert_num_queries(1):
        assert replies_naming(all_messages(), ids) == {reply.pk for reply in exposed}


def test_no_ids_take_no_query(reply_naming, django_assert_num_queries):
    reply_naming(uuid4())
    with django_assert_num_queries(0):
        assert replies_naming(all_messages(), []) == set()


def test_few_ids_are_found_by_the_index(reply_naming):
    ids = [uuid4() for _ in range(MAX_INDEXED_IDS)]
    reply_naming(ids[0])
    with connection.cursor() as cursor:
        # The table is small, so the planner would read all of it.
        cursor.execute("SET LOCAL enable_seqscan = off")
    with CaptureQueriesContext(connection) as queries:
        replies_naming(all_messages(), ids)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {queries[0]['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Bitmap Index Scan on message_receipt" in plan
