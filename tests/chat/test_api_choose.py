"""/api/v1/messages/{id}/choose/: which of several siblings counts."""

import pytest

from chat.conversations.edits import delete
from chat.conversations.messages import NewBranch, draft, post_message, post_messages
from chat.models import Message

pytestmark = pytest.mark.django_db


@pytest.fixture
def again(session, asked, answered) -> Message:
    [made] = post_messages(session, [draft("In June.", role="assistant")], at=NewBranch(asked.pk))
    return made


def url(message: Message) -> str:
    return f"/api/v1/messages/{message.pk}/choose/"


def test_the_path_goes_on_to_the_end_of_the_branch(
    api, editor, session, asked, answered, again, fresh
):
    told = api(editor).get(f"/api/v1/messages/{again.pk}/").json()
    assert told["siblings"] == [str(answered.pk), str(again.pk)]
    last = post_message(session, "Thanks.", author=editor)
    before = fresh(session).version
    answer = api(editor).post(url(answered))
    assert answer.status_code == 200
    assert answer.json()["version"] == before + 1
    assert answer.json()["last_role"] == "assistant"
    assert fresh(session).head_id == answered.pk
    api(editor).post(url(again))
    assert fresh(session).head_id == last.pk


def test_viewers_and_strangers_choose_nothing(api, viewer, stranger, session, answered, again):
    assert api(viewer).post(url(answered)).status_code == 404
    assert api(stranger).post(url(answered)).status_code == 404
    session.refresh_from_db()
    assert session.head_id == again.pk


def test_what_is_not_there_is_404(api, editor, answered):
    Message.objects.filter(pk=answered.pk).delete()
    assert api(editor).post(url(answered)).status_code == 404


def test_a_deleted_sibling_is_no_longer_among_them(api, editor, answered, again):
    delete(answered)
    told = api(editor).get(f"/api/v1/messages/{again.pk}/").json()
    assert told["siblings"] == [str(again.pk)]
