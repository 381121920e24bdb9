"""/api/v1/messages/{id}/rerun/: something else asked in its place."""

import pytest

from chat.conversations.messages import post_message
from chat.models import Message, Session

pytestmark = pytest.mark.django_db(transaction=True)


def url(message: Message) -> str:
    return f"/api/v1/messages/{message.pk}/rerun/"


def rerun(client, message: Message, content: object = "When is the rehearsal?"):
    return client.post(url(message), {"content": content}, format="json")


def test_a_sibling_is_asked_and_answered_and_counts(
    api, editor, session, question, stored_reply, scripted, fresh
):
    scripted.say("On Friday.")
    answer = rerun(api(editor), question)
    assert answer.status_code == 201
    message, reply = answer.json()["message"], answer.json()["reply"]
    assert (message["content"], message["parent"]) == ("When is the rehearsal?", None)
    assert message["siblings"] == [str(question.pk), message["id"]]
    assert (reply["content"], reply["parent"]) == ("On Friday.", message["id"])
    assert str(fresh(session).head_id) == reply["id"]
    assert fresh(question).text == "When is the cutover?"
    # The model is asked as if the first question had not been.
    assert "cutover" not in str(scripted.requests[-1]["messages"])


def test_it_streams_when_events_are_accepted(api, editor, question, stored_reply, scripted):
    answer = api(editor).post(
        url(question), {"content": "And?"}, format="json", headers={"Accept": "text/event-stream"}
    )
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    answer.close()


@pytest.mark.parametrize("content", [None, "", " ", "x" * 500_001])
def test_an_invalid_text_is_refused(api, editor, question, content):
    assert rerun(api(editor), question, content).status_code == 400
    assert Message.objects.count() == 1


def test_only_messages_of_people_are_rerun(api, editor, stored_reply):
    assert rerun(api(editor), stored_reply).status_code == 409


def test_viewers_and_strangers_get_404(api, viewer, stranger, question):
    assert rerun(api(viewer), question).status_code == 404
    assert rerun(api(stranger), question).status_code == 404
    assert Message.objects.count() == 1


def test_a_message_that_is_not_there_is_404(api, editor, session, question):
    Message.objects.all().delete()
    assert rerun(api(editor), question).status_code == 404


def test_a_closed_session_stays_as_it_is(api, editor, question):
    Session.objects.update(status="closed")
    assert rerun(api(editor), question).status_code == 409


def test_the_history_before_it_stays(api, editor, session, question, stored_reply, scripted):
    second = post_message(session, "At what time?", author=editor)
    post_message(session, "At nine.", role="assistant")
    rerun(api(editor), second, "On which day?")
    text = str(scripted.requests[-1]["messages"])
    assert "In May." in text
    assert "At nine." not in text
