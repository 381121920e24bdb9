"""Actions on single messages with plain forms and links."""

import json

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from chat.conversations.edits import edit
from chat.conversations.messages import NewBranch, begin_reply, draft, post_message, post_messages
from chat.models import Message, Reaction, Session, Status
from chat.streaming import live_replies
from tests.html import compact

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def as_editor(client, editor):
    client.force_login(editor)
    return client


def url(message: Message, what: str) -> str:
    return f"/messages/{message.pk}/{what}/"


def chat(session: Session) -> str:
    return f"/projects/billing/chats/{session.pk}/"


def shows(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_turn_offers_what_its_reader_may_do(
    client, editor, viewer, session, question, stored_reply
):
    client.force_login(editor)
    text = shows(client, chat(session))
    for action in ("edit", "delete", "fork"):
        assert url(question, action) in text
    assert url(stored_reply, "regenerate") in text
    client.force_login(viewer)
    text = shows(client, chat(session))
    for action in ("edit", "delete", "fork", "regenerate", "choose"):
        assert f"/{action}/" not in text


def test_the_words_of_others_are_asked_again_but_not_changed(
    client, owner, editor, session, question
):
    theirs = post_message(session, "Mine alone.", author=owner)
    client.force_login(editor)
    assert url(theirs, "delete") not in shows(client, chat(session))
    text = shows(client, url(theirs, "edit"))
    assert "Send again" in text
    assert "Save" not in text
    assert client.post(url(theirs, "edit"), {"content": "x", "version": 1}).status_code == 403
    assert client.get(url(theirs, "delete")).status_code == 403


def test_a_text_is_edited_by_way_of_a_page(as_editor, session, question):
    assert "When is the cutover?" in shows(as_editor, url(question, "edit"))
    assert "<html" not in shows(as_editor, f"{url(question, 'edit')}?part=turn")
    answer = as_editor.post(url(question, "edit"), {"content": "When, please?", "version": 1})
    assert answer["Location"] == f"{chat(session)}#m1"
    text = shows(as_editor, chat(session))
    assert "When, please?" in text
    assert url(question, "revisions") in text
    assert "When is the cutover?" in shows(as_editor, url(question, "revisions"))


def test_a_stale_edit_shows_both_texts_and_can_be_saved(as_editor, owner, question, fresh):
    edit(question, "Theirs.", owner)
    answer = as_editor.post(url(question, "edit"), {"content": "Mine.", "version": 1})
    assert answer.status_code == 412
    text = answer.content.decode()
    assert "Theirs." in text
    assert ">Mine.</textarea>" in text
    assert 'name="version" value="2"' in text
    as_editor.post(url(question, "edit"), {"content": "Mine.", "version": 2})
    assert fresh(question).text == "Mine."


@pytest.mark.parametrize("form", [{}, {"content": " "}, {"content": "x", "version": "y"}])
def test_an_invalid_text_is_refused_with_a_reason(as_editor, question, fresh, form):
    answer = as_editor.post(url(question, "edit"), form)
    assert answer.status_code == 400
    assert 'class="error"' in answer.content.decode()
    assert fresh(question).version == 1


def test_a_text_that_is_too_long_stays_in_the_box_with_an_error(as_editor, question, fresh):
    long = "x" * 500_001
    for action in ("edit", "rerun"):
        text = as_editor.post(
            url(question, action), {"content": long, "version": 1}
        ).content.decode()
        assert "This message is too long: 500001 characters" in text
        assert f">{long}</textarea>" in text
    assert (fresh(question).version, Message.objects.count()) == (1, 1)


def test_an_edit_of_a_deleted_message_is_refused_and_keeps_the_text(as_editor, question):
    as_editor.post(url(question, "delete"))
    answer = as_editor.post(url(question, "edit"), {"content": "Mine.", "version": 1})
    assert answer.status_code == 412
    assert "was deleted while you were editing" in answer.content.decode()
    assert ">Mine.</textarea>" in answer.content.decode()
    assert "Send again" not in answer.content.decode()
    assert as_editor.get(url(question, "edit")).status_code == 404
    assert as_editor.get(url(question, "revisions")).status_code == 404


def test_a_message_is_deleted_once_that_is_confirmed(as_editor, session, question, stored_reply):
    assert "Delete message" in shows(as_editor, url(question, "delete"))
    assert as_editor.post(url(question, "delete"))["Location"] == f"{chat(session)}#m1"
    text = shows(as_editor, chat(session))
    assert "Deleted" in text
    assert "When is the cutover?" not in text.partition("data-turns")[2]


def test_a_running_reply_is_not_deleted(as_editor, session, question):
    reply = begin_reply(question)
    text = as_editor.post(url(reply, "delete"), follow=True).content.decode()
    assert "not finished yet" in text
    answer = as_editor.post(f"{url(reply, 'delete')}?part=turn")
    assert (answer.status_code, answer.json()["detail"][:10]) == (409, "This reply")


def test_reactions_are_given_marked_and_taken_back(as_editor, owner, session, stored_reply):
    as_editor.post(url(stored_reply, "react"), {"give": "🎉"})
    Reaction.objects.create(project=session.project, message=stored_reply, user=owner, emoji="👀")
    text = compact(shows(as_editor, chat(session)))
    assert 'name="take" value="🎉"' in text
    assert 'aria-pressed="true">🎉<span class="num">1' in text
    assert 'aria-pressed="false">👀<span class="num">1' in text
    as_editor.post(url(stored_reply, "react"), {"take": "🎉"})
    assert Reaction.objects.get().emoji == "👀"
    text = as_editor.post(url(stored_reply, "react"), {}, follow=True).content.decode()
    assert "A reaction must be a single emoji." in text


def test_siblings_are_switched(as_editor, session, question, stored_reply):
    [message] = post_messages(
        session, [draft("In June.", role="assistant")], at=NewBranch(question.pk)
    )
    text = shows(as_editor, chat(session))
    assert "In June." in text
    assert "2/2" in text
    assert url(stored_reply, "choose") in text
    assert as_editor.post(url(stored_reply, "choose"))["Location"] == f"{chat(session)}#m2"
    text = shows(as_editor, chat(session))
    assert "In May." in text
    assert "1/2" in text
    assert url(message, "choose") in text


def test_a_chat_is_forked(as_editor, session, question, stored_reply):
    location = as_editor.post(url(question, "fork"))["Location"]
    chat_session = Session.objects.exclude(pk=session.pk).get()
    assert location == f"{chat(chat_session)}#latest"
    assert chat_session.messages.get().text == question.text


def test_a_message_is_asked_again(editor, session, question, stored_reply, scripted):
    scripted.say("On Friday.")

    async def talk():
        client = AsyncClient()
        await client.aforce_login(editor)
        answer = await client.post(url(question, "rerun"), {"content": "And the rehearsal?"})
        refused = await client.post(
            url(question, "rerun"), {"content": ""}, headers={"Accept": "text/event-stream"}
        )
        await live_replies.wait_for_all()
        return answer, refused

    answer, refused = async_to_sync(talk)()
    assert answer["Location"] == f"{chat(session)}#latest"
    assert json.loads(refused.content) == {"detail": "Enter some text."}
    assert list(session.messages.order_by("seq").values_list("text", flat=True))[2:] == [
        "And the rehearsal?",
        "On Friday.",
    ]


def test_a_reply_is_stopped(as_editor, session, question, stored_reply, fresh):
    reply = begin_reply(question)
    assert url(reply, "stop") in shows(as_editor, chat(session))
    assert as_editor.post(url(reply, "stop"))["Location"] == f"{chat(session)}#latest"
    assert fresh(reply).stop_requested
    as_editor.post(url(stored_reply, "stop"))
    assert not fresh(stored_reply).stop_requested
    assert fresh(stored_reply).status == Status.COMPLETE


READS = ("revisions", "stream")
CHANGES = ("edit", "rerun", "delete", "react", "choose", "fork", "regenerate", "stop")


def test_a_stranger_gets_404(client, stranger, question):
    client.force_login(stranger)
    for action in READS:
        assert client.get(url(question, action)).status_code == 404
    for action in CHANGES:
        assert client.post(url(question, action), {"content": "x"}).status_code == 404


def test_a_viewer_changes_nothing(client, viewer, question, fresh):
    client.force_login(viewer)
    for action in CHANGES:
        assert client.post(url(question, action), {"content": "x", "give": "👍"}).status_code == 404
    assert (fresh(question).version, Message.objects.count()) == (1, 1)


def test_a_signed_out_user_is_sent_to_the_sign_in_page(client, question):
    for action in CHANGES:
        assert client.post(url(question, action)).status_code == 302


def test_a_missing_message_gets_404(as_editor, question):
    Message.objects.all().delete()
    for action in CHANGES:
        assert as_editor.post(url(question, action)).status_code == 404


def test_a_closed_chat_is_neither_regenerated_nor_asked_again(
    as_editor, session, stored_reply, question
):
    Session.objects.update(status="closed")
    assert as_editor.post(url(stored_reply, "regenerate")).status_code == 404
    assert as_editor.post(url(question, "rerun"), {"content": "x"}).status_code == 404
