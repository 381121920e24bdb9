"""Replies whose prompts contained something: those whose receipts name it, for few ids by the index
and for many in one pass, and those in progress, which have no receipt yet.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from chat.conversations.generation import finalise
from chat.conversations.messages import ask, post_message
from chat.models import Message, Role, Session, Status
from memory.forgetting import service
from memory.forgetting.closure import MAX_INDEXED_IDS, replies_naming
from memory.forgetting.service import ForgetScope, forget
from memory.layers.conversations import summarise

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


SECRET = "The vault opens with the number nine four seven two."


def ask_in_new_chat(project, user) -> Message:
    """Return a reply in progress."""
    session = Session.objects.create(project=project, creator=user)
    return ask(session, "What do we know?", user)[1]


@pytest.fixture
def secret(project, owner) -> Message:
    session = Session.objects.create(project=project, creator=owner)
    return post_message(session, SECRET, author=owner)


@pytest.fixture
def summarised_secret(secret) -> Message:
    assert summarise(secret.session_id, datetime.now(UTC) + timedelta(hours=1))
    return secret


def test_a_reply_in_progress_in_the_same_chat_is_listed(project, owner, secret):
    _, reply = ask(secret.session, "What is the number?", owner)
    ask_in_new_chat(project, owner)
    assert forget(project, ForgetScope(message=secret.pk)).saw_it == [reply.pk]


def test_memory_may_be_in_the_prompt_of_any_reply_in_progress(project, owner, summarised_secret):
    reply = ask_in_new_chat(project, owner)
    done = ask_in_new_chat(project, owner)
    finalise(done, "Nothing.", Status.COMPLETE, {})
    assert forget(project, ForgetScope(message=summarised_secret.pk)).saw_it == [reply.pk]


def test_a_request_that_deletes_nothing_lists_no_reply_in_progress(project, owner, editor):
    ask_in_new_chat(project, owner)
    assert forget(project, ForgetScope(user=editor.pk)).saw_it == []


def test_replies_in_progress_are_stopped_and_forgotten_with_replies(
    project, owner, summarised_secret
):
    reply = ask_in_new_chat(project, owner)
    Message.objects.filter(pk=reply.pk).update(text="Nine four")
    receipt = forget(project, ForgetScope(message=summarised_secret.pk, replies=True), owner)
    assert receipt.saw_it == []
    assert not finalise(reply, "Nine four seven two.", Status.COMPLETE, {})
    reply = Message.objects.get(pk=reply.pk)
    assert (reply.text, reply.status, reply.stop_requested) == ("", Status.STOPPED, True)
    assert reply.forgotten_at is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("is_finished", [False, True])
def test_a_reply_that_begins_before_the_commit_counts_too(
    project, owner, summarised_secret, monkeypatch, replies, is_finished
):
    [entry] = project.entries.all()
    item = {"kind": "conversation", "id": str(entry.pk), "revision": 1, "tokens": 9}
    prompt = {"budget": 9, "sections": [{"name": "bank", "tokens": 9, "items": [item]}]}
    begun, find_phrases = [], service.find_phrases

    def begin() -> None:
        reply = ask_in_new_chat(project, owner)
        if is_finished:
            finalise(reply, "Nine four seven two.", Status.COMPLETE, {"receipt": prompt})
        begun.append(reply)
        connections.close_all()

    def begin_in_another_process(*args):
        if not begun:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(begin).result()
        return find_phrases(*args)

    monkeypatch.setattr(service, "find_phrases", begin_in_another_process)
    receipt = forget(project, ForgetScope(message=summarised_secret.pk, replies=replies), owner)
    [reply] = begun
    reply.refresh_from_db()
    assert receipt.saw_it == ([] if replies else [reply.pk])
    assert (reply.forgotten_at is not None) == replies
