"""/api/v1/sessions/{id}/prompt/: the prompt of the next reply."""

import pytest
from django.db import connection, transaction

from chat.conversations.messages import draft, post_message, post_messages
from chat.models import Message, Session, Visibility

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def url(session) -> str:
    return f"/api/v1/sessions/{session.pk}/prompt/"


def test_it_is_what_is_sent_to_the_letter(api, owner, project, session, url, scripted):
    project.instructions = "You are brief."
    project.save()
    post_message(session, "The cutover is on 3 March.", author=owner)
    post_message(session, "Noted.", role="assistant")
    payload = api(owner).get(url, {"content": "When is it?"}).json()
    messages = f"/api/v1/sessions/{session.pk}/messages/"
    api(owner).post(messages, {"content": "When is it?"}, format="json")
    sent = scripted.requests[-1]["messages"]
    assert payload["messages"] == [
        {"role": message["role"], "content": message["content"]} for message in sent
    ]
    assert [section["name"] for section in payload["sections"]] == ["persona", "history", "message"]
    assert payload["sections"][0]["text"] == "You are brief."
    assert payload["tokens"] == sum(section["tokens"] for section in payload["sections"])
    assert payload["tokens"] < payload["budget"]
    assert payload["model"] == "openai-chat:scripted"


def test_a_null_character_is_an_error(api, owner, session, url):
    answer = api(owner).get(url, {"content": "When\0"})
    assert answer.status_code == 400
    assert answer.json() == {"content": ["Null characters are not allowed."]}


def test_asking_writes_nothing(api, owner, session, url):
    before = Session.objects.values().get()
    payload = api(owner).get(url, {"content": "Hello"}).json()
    assert payload["messages"][-1] == {"role": "user", "content": "Hello"}
    assert payload["sections"][-1]["items"][0]["id"] is None
    assert Session.objects.values().get() == before
    assert not Message.objects.exists()


def test_without_content_it_is_the_answer_to_what_waits(api, owner, session, url):
    waiting = post_message(session, "When is the cutover?", author=owner)
    payload = api(owner).get(url).json()
    assert payload["messages"][-1] == {"role": "user", "content": "When is the cutover?"}
    [item] = payload["sections"][-1]["items"]
    assert (item["kind"], item["id"], item["revision"]) == ("message", str(waiting.pk), 1)


def test_without_anything_to_answer_it_is_what_stands_before(api, owner, session, url):
    assert [section["name"] for section in api(owner).get(url).json()["sections"]] == ["persona"]
    post_message(session, "Hi", author=owner)
    post_message(session, "Hello.", role="assistant")
    payload = api(owner).get(url).json()
    assert [section["name"] for section in payload["sections"]] == ["persona", "history"]
    assert payload["messages"][-1] == {"role": "assistant", "content": "Hello."}


def test_speakers_are_named_where_several_talk(api, owner, editor, session, url):
    post_message(session, "Hi", author=owner)
    post_message(session, "Hello.", role="assistant")
    payload = api(editor).get(url, {"content": "And me?"}).json()
    assert payload["messages"][-1]["content"] == "edgar: And me?"


def test_readers_may_look_and_strangers_may_not(api, viewer, stranger, url):
    assert api(viewer).get(url).status_code == 200
    assert api(stranger).get(url).status_code == 404


def test_a_long_past_costs_no_more_queries(api, owner, session, url, django_assert_max_num_queries):
    for number in range(60):
        post_message(session, str(number), author=owner)
    client = api(owner)
    with django_assert_max_num_queries(8):
        client.get(url, {"content": "Hello"})


def test_a_path_is_followed_by_the_ids_of_messages(session, owner):
    """Without statistics, another index would read all messages of the project for each step."""
    [*_, last] = post_messages(session, [draft(f"Step {n}", author=owner) for n in range(60)])
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = session.messages.path_to(session, last.pk, 60).explain()
    assert plan.count("Index Scan using chat_message_pkey on") == 2
