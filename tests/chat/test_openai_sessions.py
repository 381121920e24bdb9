"""Conversations that programs name: whose they are, and what a lock makes of two at once."""

import threading

import pytest
from django.db import connection

from chat.keyed import Keyed, go_on
from chat.models import Message, Role, Session
from chat.replies import post_message
from chat.requested import Told
from chat.sessions import delete_session


def ask(text: str) -> list[Told]:
    return [Told(Role.USER, text)]


@pytest.mark.django_db
def test_a_key_that_came_with_somebody_elses_conversation_is_let_go(project, owner, editor):
    keyed = Keyed(project, owner, "crew")
    theirs = Session.objects.create(project=project, creator=editor, source_key=keyed.key)
    post_message(theirs, "This is mine.", author=editor)
    reply = go_on(keyed, ask("Hello"), {})
    assert reply.session_id != theirs.pk
    assert keyed.session().pk == reply.session_id
    theirs.refresh_from_db()
    assert (theirs.last_seq, theirs.source_key) == (1, None)


@pytest.mark.django_db
def test_a_conversation_may_be_deleted_any_number_of_times(project, owner):
    keyed = Keyed(project, owner, "crew")
    for number in range(3):
        reply = go_on(keyed, ask(f"Round {number}"), {})
        assert list(reply.session.messages.values_list("seq", flat=True)) == [1, 2]
        delete_session(reply.session)
    assert keyed.session() is None
    assert Session.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_new_to_many_at_once_is_one_conversation(project, owner):
    def speak(number: int) -> None:
        go_on(Keyed(project, owner, "crew"), ask(f"Question {number}"), {})
        connection.close()

    writers = [threading.Thread(target=speak, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    session = Session.objects.get()
    assert list(session.messages.order_by("seq").values_list("seq", flat=True)) == [*range(1, 17)]
    for reply in Message.objects.filter(role=Role.ASSISTANT).select_related("parent"):
        assert (reply.parent.role, reply.parent.seq) == (Role.USER, reply.seq - 1)
