"""/api/v1/sessions/{id}/clear/: a conversation emptied."""

import pytest

from chat.conversations import edits
from chat.conversations.messages import begin_reply, post_message
from chat.models import Session
from projects.core.errors import ConflictError

pytestmark = pytest.mark.django_db


def url(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/clear/"


def test_everything_is_deleted_and_the_version_goes_on(
    api, editor, session, question, stored_reply
):
    answer = api(editor).post(url(session))
    assert answer.status_code == 200
    payload = answer.json()
    assert (payload["message_count"], payload["last_role"], payload["version"]) == (0, None, 3)
    assert not session.messages.filter(deleted_at=None).exists()
    session.refresh_from_db()
    second_question = post_message(session, "Anew.", author=editor)
    assert (second_question.seq, second_question.parent_id) == (3, None)
    payload = api(editor).get(f"/api/v1/messages/{second_question.pk}/").json()
    assert payload["siblings"] == [str(second_question.pk)]


def test_the_list_leaves_out_what_was_cleared(api, editor, session, question, stored_reply):
    client = api(editor)

    def listed() -> list[int]:
        answer = client.get(f"/api/v1/sessions/{session.pk}/messages/")
        return [message["seq"] for message in answer.json()["results"]]

    assert listed() == [1, 2]
    client.post(url(session))
    assert listed() == []
    session.refresh_from_db()
    again = post_message(session, "Anew.", author=editor)
    post_message(session, "And more.", author=editor)
    assert listed() == [3, 4]
    # A single deleted message keeps its empty place.
    client.delete(f"/api/v1/messages/{again.pk}/")
    assert listed() == [3, 4]


@pytest.mark.parametrize("keep_deleted", [False, True])
def test_no_path_from_before_becomes_active_afterwards(
    api, client, editor, session, project, question, stored_reply, keep_deleted
):
    project.keep_deleted = keep_deleted
    project.save()
    edits.clear(session)
    for action in ("choose", "regenerate"):
        answer = api(editor).post(f"/api/v1/messages/{stored_reply.pk}/{action}/")
        assert (answer.status_code, answer.json()["detail"]) == (409, "This message was deleted.")
    client.force_login(editor)
    answer = client.post(f"/messages/{stored_reply.pk}/choose/")
    assert answer.status_code == 302
    session.refresh_from_db()
    assert session.head_id is None


def test_not_while_a_reply_is_unfinished(api, editor, session, question):
    begin_reply(question)
    answer = api(editor).post(url(session))
    assert answer.status_code == 409
    assert "Stop the reply first" in answer.json()["detail"]
    assert session.messages.filter(deleted_at=None).count() == 2


def test_an_owner_does_and_others_do_not(api, owner, viewer, stranger, person, session, question):
    assert api(viewer).post(url(session)).status_code == 404
    assert api(stranger).post(url(session)).status_code == 404
    Session.objects.update(creator=owner)
    assert api(owner).post(url(session)).status_code == 200


def test_another_editor_does_not(api, owner, editor, session, question):
    Session.objects.update(creator=owner)
    assert api(editor).post(url(session)).status_code == 404


def test_a_hidden_message_is_deleted_too(api, editor, session, question, fresh):
    edits.hide(question)
    assert api(editor).post(url(session)).status_code == 200
    with pytest.raises(ConflictError):
        edits.show(question)
    assert fresh(question).deleted_at is not None
