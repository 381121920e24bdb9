"""/api/v1/messages/{id}/regenerate/: another reply beside one that is there."""

import pytest

from chat.conversations.edits import delete, hide
from chat.conversations.messages import begin_reply, post_message
from chat.models import Message, Session, Status, Visibility

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def question(session, owner) -> Message:
    return post_message(session, "When is the cutover?", author=owner)


@pytest.fixture
def stored_reply(session, question) -> Message:
    return post_message(session, "In May.", role="assistant")


def url(message: Message) -> str:
    return f"/api/v1/messages/{message.pk}/regenerate/"


def test_a_sibling_is_generated_and_becomes_active(
    api, owner, session, question, stored_reply, scripted
):
    scripted.say("On 3 March.")
    answer = api(owner).post(url(stored_reply))
    assert answer.status_code == 201
    assert answer.json()["message"]["id"] == str(question.pk)
    reply = answer.json()["reply"]
    assert (reply["parent"], reply["content"]) == (str(question.pk), "On 3 March.")
    session.refresh_from_db()
    assert str(session.head_id) == reply["id"]
    assert Message.objects.get(pk=stored_reply.pk).text == "In May."


def test_only_the_finished_reply_to_a_message_can_be(api, owner, session, question, stored_reply):
    opening = post_message(session, "And more.", role="assistant")
    unfinished = begin_reply(question)
    for message in (question, opening, unfinished):
        answer = api(owner).post(url(message))
        assert answer.status_code == 409
        assert "detail" in answer.json()
    assert Message.objects.unfinished().count() == 1


def test_a_deleted_message_is_not_answered_again(
    api, owner, project, question, stored_reply, scripted
):
    delete(question)
    refused = api(owner).post(url(stored_reply))
    assert refused.json() == {
        "detail": "The message before this reply was deleted, so the reply cannot be regenerated."
    }
    assert scripted.requests == []
    project.keep_deleted = True
    project.save()
    assert api(owner).post(url(stored_reply)).status_code == 201
    assert "[deleted 20" in str(scripted.requests[-1]["messages"])


def test_a_hidden_message_is_not_answered_again(
    api, owner, project, question, stored_reply, scripted
):
    """Even where prompts contain deleted messages, they do not contain hidden ones."""
    project.keep_deleted = True
    project.save()
    hide(question)
    assert api(owner).post(url(stored_reply)).status_code == 409
    assert scripted.requests == []


def test_a_failed_reply_can_be_tried_again(api, owner, question, scripted):
    failed = begin_reply(question)
    Message.objects.filter(pk=failed.pk).update(status=Status.FAILED)
    scripted.say("On 3 March.")
    assert api(owner).post(url(failed)).json()["reply"]["status"] == "complete"


def test_viewers_and_strangers_get_404(api, viewer, stranger, stored_reply):
    assert api(viewer).post(url(stored_reply)).status_code == 404
    assert api(stranger).post(url(stored_reply)).status_code == 404


def test_a_message_that_is_not_there_is_404(api, owner, session, stored_reply):
    Message.objects.filter(pk=stored_reply.pk).delete()
    assert api(owner).post(url(stored_reply)).status_code == 404


def test_a_closed_session_stays_as_it_is(api, owner, stored_reply):
    Session.objects.update(status="closed")
    assert api(owner).post(url(stored_reply)).status_code == 409
