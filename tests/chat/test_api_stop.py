"""/api/v1/messages/{id}/stop/: the end of a reply, when a reader has had enough."""

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from chat.conversations.messages import begin_reply
from chat.models import Message, Status
from chat.streaming import live_replies
from projects.models import Token

pytestmark = pytest.mark.django_db(transaction=True)


def url(message: Message) -> str:
    return f"/api/v1/messages/{message.pk}/stop/"


def test_the_text_so_far_stays(editor, question, scripted, fresh):
    scripted.say(" ".join(f"word{number}" for number in range(500)), delay=0.02)
    reply = begin_reply(question)
    headers = {"Authorization": f"Bearer {Token.objects.create(user=editor)[1]}"}

    async def talk() -> int:
        await live_replies.start(reply)
        async for _ in live_replies.follow(reply.pk):
            break
        answer = await AsyncClient().post(url(reply), headers=headers)
        await live_replies.wait_for_all()
        return answer.status_code

    assert async_to_sync(talk)() == 202
    ended = fresh(reply)
    assert ended.status == Status.STOPPED
    assert ended.text.startswith("word0")
    assert "word499" not in ended.text


def test_another_process_is_asked_to(api, editor, question, fresh):
    reply = begin_reply(question)
    answer = api(editor).post(url(reply))
    assert answer.status_code == 202
    assert answer.json()["id"] == str(reply.pk)
    assert fresh(reply).stop_requested


def test_a_complete_reply_is_not_stopped(api, editor, question, stored_reply):
    for message in (question, stored_reply):
        answer = api(editor).post(url(message))
        assert answer.status_code == 409
        assert "not a reply in progress" in answer.json()["detail"]


def test_viewers_and_strangers_stop_nothing(api, viewer, stranger, question, fresh):
    reply = begin_reply(question)
    assert api(viewer).post(url(reply)).status_code == 404
    assert api(stranger).post(url(reply)).status_code == 404
    assert not fresh(reply).stop_requested


def test_a_missing_object_is_404(api, editor, question):
    reply = begin_reply(question)
    Message.objects.filter(pk=reply.pk).delete()
    assert api(editor).post(url(reply)).status_code == 404
