"""/api/v1/sessions/{id}/fork/: another conversation that begins with this one."""

import pytest

from chat.conversations.edits import delete
from chat.conversations.messages import post_message
from chat.models import Session, Visibility

pytestmark = pytest.mark.django_db


def url(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/fork/"


def fork(client, session: Session, **body):
    return client.post(url(session), body, format="json")


def test_it_begins_with_the_path_down_to_the_message(
    api, owner, editor, session, question, stored_reply
):
    post_message(session, "At what time?", author=editor)
    answer = fork(api(owner), session, message=str(stored_reply.pk))
    assert answer.status_code == 201
    payload = answer.json()
    assert (payload["creator"], payload["title"]) == ("olive", "The cutover")
    assert (payload["message_count"], payload["last_role"]) == (2, "assistant")
    chat_session = Session.objects.get(pk=payload["id"])
    copies = list(chat_session.messages.order_by("seq"))
    assert [copy.text for copy in copies] == [question.text, stored_reply.text]
    assert [copy.copied_from_id for copy in copies] == [question.pk, stored_reply.pk]
    assert session.messages.count() == 3


def test_without_a_message_it_takes_all_of_the_path(api, editor, session, question, stored_reply):
    assert fork(api(editor), session).json()["message_count"] == 2


def test_deleted_messages_are_left_out(api, editor, session, question, stored_reply):
    delete(question)
    assert fork(api(editor), session).json()["message_count"] == 1


def test_without_messages_it_is_empty(api, editor, session, question):
    delete(question)
    answer = fork(api(editor), session, message=str(question.pk))
    assert (answer.status_code, answer.json()["message_count"]) == (201, 0)


@pytest.mark.parametrize("message", ["x", 7, None, "01a1fd94-aff6-71b6-8bd0-91ac1672867b"])
def test_an_invalid_message_is_refused(api, editor, session, question, message):
    answer = fork(api(editor), session, message=message)
    assert answer.status_code == 400
    assert list(answer.json()) == ["message"]


def test_a_message_of_another_session_is_refused(api, editor, project, session, question):
    other = Session.objects.create(project=project, creator=editor)
    theirs = post_message(other, "Elsewhere.", author=editor)
    assert fork(api(editor), session, message=str(theirs.pk)).status_code == 400
    assert fork(api(editor), Session.objects.create(project=project)).status_code == 400


def test_viewers_strangers_and_who_may_not_see_it_get_404(
    api, viewer, owner, stranger, session, question
):
    assert fork(api(viewer), session).status_code == 404
    assert fork(api(stranger), session).status_code == 404
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert fork(api(owner), session).status_code == 404
