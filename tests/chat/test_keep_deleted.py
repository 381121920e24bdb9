"""A project whose assistant still sees what was deleted, set by page and by API."""

import re

import pytest
from asgiref.sync import async_to_sync

from chat.conversations import edits, generation
from chat.conversations.lookups import Answer
from chat.conversations.messages import begin_reply, post_message
from chat.conversations.sessions import delete_session
from chat.models import Message
from chat.prompt import sections

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = "/projects/billing/settings/"
TAGGED = re.compile(r"\[deleted 20\d\d-\d\d-\d\d \d\d:\d\d\] edgar: When is the cutover\?")


@pytest.fixture
def deleted_question(question, stored_reply, editor) -> Message:
    """A question that was deleted after its answer."""
    edits.delete(question)
    return question


@async_to_sync
async def generate(reply: Message) -> None:
    async for _ in generation.stream_reply(reply):
        pass


def prompt_text(api, user, session) -> str:
    return str(api(user).get(f"/api/v1/sessions/{session.pk}/prompt/").json()["messages"])


def test_without_it_the_next_prompt_has_nothing_of_a_deleted_message(
    api, owner, session, deleted_question
):
    assert "cutover" not in prompt_text(api, owner, session)


def test_by_the_api_the_next_prompt_has_the_deleted_message_tagged(
    api, owner, session, deleted_question
):
    project = "/api/v1/projects/billing/"
    assert api(owner).get(project).json()["keep_deleted"] is False
    answer = api(owner).patch(project, {"keep_deleted": True}, format="json")
    assert answer.json()["keep_deleted"] is True
    assert TAGGED.search(prompt_text(api, owner, session))


def test_by_the_page_the_next_prompt_has_the_deleted_message_tagged(
    client, owner, session, deleted_question
):
    client.force_login(owner)
    page = client.get(SETTINGS).content.decode()
    assert "Let the assistant see deleted messages" in page
    assert "marked with the time of deletion" in page
    form = dict(re.findall(r'name="(initial-\w+)" value="([^"]*)"', page))
    form |= {name.removeprefix("initial-"): value for name, value in form.items()}
    form |= {"keep_deleted": "on", "indexed_roles": ["user", "assistant"]}
    assert client.post(SETTINGS, form).status_code == 302
    prompt = client.get(f"/projects/billing/chats/{session.pk}/prompt/").content.decode()
    assert TAGGED.search(prompt)


def test_later_prompts_contain_the_deleted_message(api, owner, session, deleted_question, scripted):
    api(owner).patch("/api/v1/projects/billing/", {"keep_deleted": True}, format="json")
    url = f"/api/v1/sessions/{session.pk}/messages/"
    api(owner).post(url, {"content": "What did I ask?"}, format="json")
    assert TAGGED.search(str(scripted.requests[-1]["messages"]))
    listed = api(owner).get(url).json()["results"]
    assert listed[0]["content"] == ""


def test_every_member_reads_that_it_is_so(client, viewer, project):
    project.keep_deleted = True
    project.save()
    client.force_login(viewer)
    assert "visible to the assistant" in client.get(SETTINGS).content.decode()


def test_a_message_deleted_while_its_reply_waits_is_not_sent(session, editor, scripted):
    waiting = post_message(session, "My password is tulip.", author=editor)
    reply = begin_reply(waiting)
    edits.delete(waiting)
    queued = Message.objects.select_related("session__project").get(pk=reply.pk)
    generate(queued)
    reply.refresh_from_db()
    assert (reply.status, reply.error) == ("failed", sections.DELETED)
    assert scripted.requests == []


def test_a_message_whose_chat_is_deleted_while_its_reply_waits_is_not_sent(
    session, editor, scripted
):
    reply = begin_reply(post_message(session, "My password is tulip.", author=editor))
    delete_session(session)
    generate(reply)
    reply.refresh_from_db()
    assert (reply.status, reply.error) == ("failed", sections.DELETED)
    assert scripted.requests == []


@pytest.mark.parametrize("what", ["message", "chat"])
def test_a_message_deleted_while_the_first_model_fails_is_not_sent_to_the_second(
    session, project, editor, scripted, monkeypatch, what
):
    project.fallback_model = "openai-chat:other"
    project.save()
    waiting = post_message(session, "My password is tulip.", author=editor)
    queued = begin_reply(waiting)
    switch = Answer._switch

    def delete_and_switch(self, error) -> None:
        edits.delete(waiting) if what == "message" else delete_session(session)
        switch(self, error)

    monkeypatch.setattr(Answer, "_switch", delete_and_switch)
    scripted.status(503)
    generate(queued)
    queued.refresh_from_db()
    assert (queued.status, queued.error) == ("failed", sections.DELETED)
    assert [request["model"] for request in scripted.requests] == ["scripted"]


def test_a_message_that_waits_for_its_answer_is_deleted_like_any_other(
    api, owner, editor, session, stored_reply
):
    waiting = post_message(session, "My password is tulip.", author=editor)
    edits.delete(waiting)
    assert "tulip" not in prompt_text(api, owner, session)
