"""/api/v1/messages/{id}/choose/: which of several siblings counts."""

import pytest

from chat.conversations.edits import delete
from chat.conversations.messages import NewBranch, draft, post_message, post_messages
from chat.models import Message, Session

pytestmark = pytest.mark.django_db


@pytest.fixture
def other_reply(session, question, stored_reply) -> Message:
    [message] = post_messages(
        session, [draft("In June.", role="assistant")], at=NewBranch(question.pk)
    )
    return message


def url(message: Message) -> str:
    return f"/api/v1/messages/{message.pk}/choose/"


def test_the_path_goes_on_to_the_end_of_the_branch(
    api, editor, session, question, stored_reply, other_reply, fresh
):
    payload = api(editor).get(f"/api/v1/messages/{other_reply.pk}/").json()
    assert payload["siblings"] == [str(stored_reply.pk), str(other_reply.pk)]
    last = post_message(session, "Thanks.", author=editor)
    before = fresh(session).version
    answer = api(editor).post(url(stored_reply))
    assert answer.status_code == 200
    assert answer.json()["version"] == before + 1
    assert answer.json()["last_role"] == "assistant"
    assert fresh(session).head_id == stored_reply.pk
    api(editor).post(url(other_reply))
    assert fresh(session).head_id == last.pk


def test_the_list_can_be_limited_to_the_active_path(
    api, editor, session, question, stored_reply, other_reply
):
    listed = f"/api/v1/sessions/{session.pk}/messages/"

    def ids(**parameters) -> list[str]:
        return [row["id"] for row in api(editor).get(listed, parameters).json()["results"]]

    asked, first, second = (str(message.pk) for message in (question, stored_reply, other_reply))
    assert ids() == [asked, first, second]
    assert ids(active="true") == [asked, second]
    assert ids(active="false") == [first]
    assert ids(active="true", ordering="-seq", role="assistant") == [second]
    api(editor).post(url(stored_reply))
    assert ids(active="true") == [asked, first]


def test_a_chat_without_messages_has_an_empty_path(api, editor, project):
    empty = Session.objects.create(project=project, creator=editor)
    answer = api(editor).get(f"/api/v1/sessions/{empty.pk}/messages/", {"active": "true"})
    assert answer.json()["results"] == []


def test_viewers_and_strangers_choose_nothing(
    api, viewer, stranger, session, stored_reply, other_reply
):
    assert api(viewer).post(url(stored_reply)).status_code == 404
    assert api(stranger).post(url(stored_reply)).status_code == 404
    session.refresh_from_db()
    assert session.head_id == other_reply.pk


def test_a_missing_object_is_404(api, editor, stored_reply):
    Message.objects.filter(pk=stored_reply.pk).delete()
    assert api(editor).post(url(stored_reply)).status_code == 404


def test_a_deleted_sibling_is_no_longer_among_them(api, editor, stored_reply, other_reply):
    delete(stored_reply)
    payload = api(editor).get(f"/api/v1/messages/{other_reply.pk}/").json()
    assert payload["siblings"] == [str(other_reply.pk)]
