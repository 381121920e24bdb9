"""What people do with single messages, by plain forms and links."""

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


def test_a_turn_offers_what_its_reader_may_do(client, editor, viewer, session, asked, answered):
    client.force_login(editor)
    text = shows(client, chat(session))
    for what in ("edit", "delete", "fork"):
        assert url(asked, what) in text
    assert url(answered, "regenerate") in text
    client.force_login(viewer)
    text = shows(client, chat(session))
    for what in ("edit", "delete", "fork", "regenerate", "choose"):
        assert f"/{what}/" not in text


def test_the_words_of_others_are_asked_again_but_not_changed(client, owner, editor, session, asked):
    theirs = post_message(session, "Mine alone.", author=owner)
    client.force_login(editor)
    assert url(theirs, "delete") not in shows(client, chat(session))
    text = shows(client, url(theirs, "edit"))
    assert "Ask again" in text
    assert "Save" not in text
    assert client.post(url(theirs, "edit"), {"content": "x", "version": 1}).status_code == 403
    assert client.get(url(theirs, "delete")).status_code == 403


def test_a_text_is_edited_by_way_of_a_page(as_editor, session, asked):
    assert "When is the cutover?" in shows(as_editor, url(asked, "edit"))
    assert "<html" not in shows(as_editor, f"{url(asked, 'edit')}?part=turn")
    answer = as_editor.post(url(asked, "edit"), {"content": "When, please?", "version": 1})
    assert answer["Location"] == f"{chat(session)}#m1"
    text = shows(as_editor, chat(session))
    assert "When, please?" in text
    assert url(asked, "revisions") in text
    assert "When is the cutover?" in shows(as_editor, url(asked, "revisions"))


def test_who_was_overtaken_gets_both_texts_and_saves_then(as_editor, owner, asked, fresh):
    edit(asked, "Theirs.", owner)
    answer = as_editor.post(url(asked, "edit"), {"content": "Mine.", "version": 1})
    assert answer.status_code == 412
    text = answer.content.decode()
    assert "Theirs." in text
    assert ">Mine.</textarea>" in text
    assert 'name="version" value="2"' in text
    as_editor.post(url(asked, "edit"), {"content": "Mine.", "version": 2})
    assert fresh(asked).text == "Mine."


@pytest.mark.parametrize("form", [{}, {"content": " "}, {"content": "x", "version": "y"}])
def test_what_is_no_text_is_refused_with_its_reason(as_editor, asked, fresh, form):
    answer = as_editor.post(url(asked, "edit"), form)
    assert answer.status_code == 400
    assert 'class="error"' in answer.content.decode()
    assert fresh(asked).version == 1


def test_what_is_too_long_says_so_and_stays_in_the_box(as_editor, asked, fresh):
    long = "x" * 500_001
    for what in ("edit", "rerun"):
        text = as_editor.post(url(asked, what), {"content": long, "version": 1}).content.decode()
        assert "This is too long: it has 500001 characters" in text
        assert f">{long}</textarea>" in text
    assert (fresh(asked).version, Message.objects.count()) == (1, 1)


def test_what_was_deleted_meanwhile_takes_no_edit_and_keeps_the_words(as_editor, asked):
    as_editor.post(url(asked, "delete"))
    answer = as_editor.post(url(asked, "edit"), {"content": "Mine.", "version": 1})
    assert answer.status_code == 412
    assert "was deleted while you wrote" in answer.content.decode()
    assert ">Mine.</textarea>" in answer.content.decode()
    assert as_editor.get(url(asked, "edit")).status_code == 404
    assert as_editor.get(url(asked, "revisions")).status_code == 404


def test_a_message_is_deleted_once_that_is_confirmed(as_editor, session, asked, answered):
    assert "Delete message" in shows(as_editor, url(asked, "delete"))
    assert as_editor.post(url(asked, "delete"))["Location"] == f"{chat(session)}#m1"
    text = shows(as_editor, chat(session))
    assert "Deleted" in text
    assert "When is the cutover?" not in text.partition("data-turns")[2]


def test_what_is_still_being_said_is_not_deleted(as_editor, session, asked):
    reply = begin_reply(asked)
    text = as_editor.post(url(reply, "delete"), follow=True).content.decode()
    assert "still being written" in text
    answer = as_editor.post(f"{url(reply, 'delete')}?part=turn")
    assert (answer.status_code, answer.json()["detail"][:10]) == (409, "This reply")


def test_reactions_are_given_marked_and_taken_back(as_editor, owner, session, answered):
    as_editor.post(url(answered, "react"), {"give": "🎉"})
    Reaction.objects.create(project=session.project, message=answered, user=owner, emoji="👀")
    text = compact(shows(as_editor, chat(session)))
    assert 'name="take" value="🎉"' in text
    assert 'aria-pressed="true">🎉<span class="num">1' in text
    assert 'aria-pressed="false">👀<span class="num">1' in text
    as_editor.post(url(answered, "react"), {"take": "🎉"})
    assert Reaction.objects.get().emoji == "👀"
    text = as_editor.post(url(answered, "react"), {}, follow=True).content.decode()
    assert "A reaction is one emoji." in text


def test_siblings_are_switched(as_editor, session, asked, answered):
    [again] = post_messages(session, [draft("In June.", role="assistant")], at=NewBranch(asked.pk))
    text = shows(as_editor, chat(session))
    assert "In June." in text
    assert "2/2" in text
    assert url(answered, "choose") in text
    assert as_editor.post(url(answered, "choose"))["Location"] == f"{chat(session)}#m2"
    text = shows(as_editor, chat(session))
    assert "In May." in text
    assert "1/2" in text
    assert url(again, "choose") in text


def test_a_chat_is_forked(as_editor, session, asked, answered):
    location = as_editor.post(url(asked, "fork"))["Location"]
    made = Session.objects.exclude(pk=session.pk).get()
    assert location == f"{chat(made)}#latest"
    assert made.messages.get().text == asked.text


def test_a_message_is_asked_again(editor, session, asked, answered, scripted):
    scripted.say("On Friday.")

    async def talk():
        client = AsyncClient()
        await client.aforce_login(editor)
        answer = await client.post(url(asked, "rerun"), {"content": "And the rehearsal?"})
        refused = await client.post(
            url(asked, "rerun"), {"content": ""}, headers={"Accept": "text/event-stream"}
        )
        await live_replies.wait_for_all()
        return answer, refused

    answer, refused = async_to_sync(talk)()
    assert answer["Location"] == f"{chat(session)}#latest"
    assert json.loads(refused.content) == {"detail": "Write something first."}
    assert list(session.messages.order_by("seq").values_list("text", flat=True))[2:] == [
        "And the rehearsal?",
        "On Friday.",
    ]


def test_a_reply_is_stopped(as_editor, session, asked, answered, fresh):
    reply = begin_reply(asked)
    assert url(reply, "stop") in shows(as_editor, chat(session))
    assert as_editor.post(url(reply, "stop"))["Location"] == f"{chat(session)}#latest"
    assert fresh(reply).stop_requested
    as_editor.post(url(answered, "stop"))
    assert not fresh(answered).stop_requested
    assert fresh(answered).status == Status.COMPLETE


READS = ("revisions", "stream")
CHANGES = ("edit", "rerun", "delete", "react", "choose", "fork", "regenerate", "stop")


def test_a_stranger_gets_404(client, stranger, asked):
    client.force_login(stranger)
    for what in READS:
        assert client.get(url(asked, what)).status_code == 404
    for what in CHANGES:
        assert client.post(url(asked, what), {"content": "x"}).status_code == 404


def test_a_viewer_changes_nothing(client, viewer, asked, fresh):
    client.force_login(viewer)
    for what in CHANGES:
        assert client.post(url(asked, what), {"content": "x", "give": "👍"}).status_code == 404
    assert (fresh(asked).version, Message.objects.count()) == (1, 1)


def test_whoever_is_signed_out_is_sent_to_sign_in(client, asked):
    for what in CHANGES:
        assert client.post(url(asked, what)).status_code == 302


def test_what_is_not_there_gets_404(as_editor, asked):
    Message.objects.all().delete()
    for what in CHANGES:
        assert as_editor.post(url(asked, what)).status_code == 404


def test_a_closed_chat_is_neither_regenerated_nor_asked_again(as_editor, session, answered, asked):
    Session.objects.update(status="closed")
    assert as_editor.post(url(answered, "regenerate")).status_code == 404
    assert as_editor.post(url(asked, "rerun"), {"content": "x"}).status_code == 404
