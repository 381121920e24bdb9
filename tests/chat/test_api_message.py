"""/api/v1/messages/{id}/: read, edit and delete one message."""

import pytest

from chat.conversations.edits import delete, edit
from chat.conversations.messages import begin_reply, post_message
from chat.models import MessageRevision

pytestmark = pytest.mark.django_db

NOWHERE = "/api/v1/messages/01a1fd94-aff6-71b6-8bd0-91ac1672867b/"


def url(message) -> str:
    return f"/api/v1/messages/{message.pk}/"


def patch(client, message, content="In June.", **headers):
    return client.patch(url(message), {"content": content}, format="json", headers=headers)


def test_a_reader_gets_it_with_its_version_as_entity_tag(api, viewer, question):
    answer = api(viewer).get(url(question))
    payload = answer.json()
    assert answer.headers["ETag"].startswith('"1.')
    assert (payload["content"], payload["author"], payload["version"]) == (
        question.text,
        "edgar",
        1,
    )
    assert (payload["edited_at"], payload["deleted_at"]) == (None, None)
    assert (payload["reactions"], payload["siblings"]) == ([], [str(question.pk)])


def test_its_author_edits_it_and_the_earlier_text_stays(api, editor, session, question, fresh):
    answer = patch(api(editor), question, "When is the migration?")
    assert answer.status_code == 200
    assert answer.headers["ETag"].startswith('"2.')
    assert answer.json()["content"] == fresh(question).text == "When is the migration?"
    assert answer.json()["edited_at"]
    assert MessageRevision.objects.get().text == "When is the cutover?"
    assert fresh(session).version == 2


@pytest.mark.parametrize("tag", ["1", '"1"', 'W/"1"', "*"])
def test_an_edit_of_the_version_that_was_read_is_made(api, editor, question, tag):
    assert patch(api(editor), question, **{"If-Match": tag}).status_code == 200


def test_a_stale_edit_gets_412_and_the_message_as_it_is(api, editor, question, fresh):
    edit(question, "Somebody was quicker.", editor)
    answer = patch(api(editor), question, "Mine.", **{"If-Match": '"1"'})
    assert answer.status_code == 412
    assert answer.headers["ETag"].startswith('"2.')
    assert (
        answer.json()["detail"] == "This message has changed since you opened it. Reload the page."
    )
    assert answer.json()["message"]["content"] == "Somebody was quicker."
    assert fresh(question).text == "Somebody was quicker."
    deletion = api(editor).delete(url(question), headers={"If-Match": "1"})
    assert deletion.status_code == 412
    assert fresh(question).deleted_at is None


@pytest.mark.parametrize("tag", ["x", '"1', "1, 2", "-1", "9" * 12])
def test_an_invalid_version_is_refused(api, editor, question, tag):
    assert patch(api(editor), question, **{"If-Match": tag}).status_code == 400


@pytest.mark.parametrize("content", [None, "", " \n", "x" * 500_001, ["a"]])
def test_an_invalid_text_is_refused(api, editor, question, content):
    answer = patch(api(editor), question, content)
    assert answer.status_code == 400
    assert list(answer.json()) == ["content"]


def test_any_writer_edits_replies_of_the_assistant(api, owner, editor, stored_reply):
    assert patch(api(editor), stored_reply).status_code == 200
    assert patch(api(owner), stored_reply).status_code == 200


def test_the_words_of_others_are_changed_by_owners_only(api, owner, editor, person, session):
    theirs = post_message(session, "Mine alone.", author=owner)
    recorded = post_message(session, "Said elsewhere.", author_name="Jane")
    for message in (theirs, recorded):
        answer = patch(api(editor), message)
        assert answer.status_code == 403
        assert "owners" in answer.json()["detail"]
        assert api(editor).delete(url(message)).status_code == 403
    assert patch(api(owner), recorded).status_code == 200


def test_viewers_and_strangers_change_nothing(api, viewer, stranger, question, stored_reply):
    for user in (viewer, stranger):
        assert patch(api(user), question).status_code == 404
        assert api(user).delete(url(stored_reply)).status_code == 404
    assert api(stranger).get(url(question)).status_code == 404


def test_a_token_that_may_only_read_changes_nothing(api, editor, question):
    client = api(editor, scopes=["read"])
    assert client.get(url(question)).status_code == 200
    assert patch(client, question).status_code == 403


def test_a_missing_object_is_404(api, editor, session):
    assert api(editor).get(NOWHERE).status_code == 404
    assert api(editor).delete(NOWHERE).status_code == 404


def test_a_deleted_message_keeps_its_place_and_loses_its_words(api, editor, session, question):
    edit(question, "Again?", editor)
    answer = api(editor).delete(url(question))
    assert answer.status_code == 204
    assert answer.headers["ETag"] == '"3"'
    payload = api(editor).get(url(question)).json()
    assert (payload["content"], payload["seq"]) == ("", 1)
    assert payload["deleted_at"]
    [listed] = api(editor).get(f"/api/v1/sessions/{session.pk}/messages/").json()["results"]
    assert listed["content"] == ""
    assert api(editor).get(f"{url(question)}revisions/").json()["results"] == []
    assert api(editor).delete(url(question)).status_code == 204


def test_deleted_and_unfinished_messages_are_not_edited(api, editor, question, stored_reply):
    delete(stored_reply)
    assert patch(api(editor), stored_reply).status_code == 409
    reply = begin_reply(question)
    answer = api(editor).delete(url(reply))
    assert answer.status_code == 409
    assert answer.json()["detail"] == "This reply is not finished yet."
