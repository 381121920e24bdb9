"""/api/v1/sessions/{id}/clear/: a conversation emptied."""

import pytest

from chat.conversations.messages import begin_reply, post_message
from chat.models import Session

pytestmark = pytest.mark.django_db


def url(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/clear/"


def test_everything_is_deleted_and_the_version_goes_on(api, editor, session, asked, answered):
    answer = api(editor).post(url(session))
    assert answer.status_code == 200
    told = answer.json()
    assert (told["message_count"], told["last_role"], told["version"]) == (0, None, 3)
    assert not session.messages.filter(deleted_at=None).exists()
    session.refresh_from_db()
    again = post_message(session, "Anew.", author=editor)
    assert (again.seq, again.parent_id) == (3, None)
    told = api(editor).get(f"/api/v1/messages/{again.pk}/").json()
    assert told["siblings"] == [str(again.pk)]


def test_not_while_a_reply_is_being_said(api, editor, session, asked):
    begin_reply(asked)
    answer = api(editor).post(url(session))
    assert answer.status_code == 409
    assert "Stop it first" in answer.json()["detail"]
    assert session.messages.filter(deleted_at=None).count() == 2


def test_an_owner_does_and_others_do_not(api, owner, viewer, stranger, person, session, asked):
    assert api(viewer).post(url(session)).status_code == 404
    assert api(stranger).post(url(session)).status_code == 404
    Session.objects.update(creator=owner)
    assert api(owner).post(url(session)).status_code == 200


def test_another_editor_does_not(api, owner, editor, session, asked):
    Session.objects.update(creator=owner)
    assert api(editor).post(url(session)).status_code == 404
