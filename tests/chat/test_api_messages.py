"""/api/v1/sessions/{id}/messages/: list and create messages."""

import pytest

from chat.conversations.messages import PresetPlaces, draft, post_message, post_messages
from chat.models import Message, Session, Visibility
from projects.models import Membership

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def url(session) -> str:
    return f"/api/v1/sessions/{session.pk}/messages/"


def test_a_message_is_answered(api, owner, url, scripted):
    scripted.say("On 3 March.")
    answer = api(owner).post(url, {"content": "When is the cutover?"}, format="json")
    assert answer.status_code == 201
    message, reply = answer.json()["message"], answer.json()["reply"]
    assert (message["seq"], message["role"], message["author"]) == (1, "user", "olive")
    assert message["content"] == "When is the cutover?"
    assert (reply["seq"], reply["role"], reply["parent"]) == (2, "assistant", message["id"])
    assert (reply["content"], reply["status"], reply["error"]) == ("On 3 March.", "complete", "")
    assert reply["model"] == "openai-chat:scripted"
    assert reply["input_tokens"] > 0
    assert reply["output_tokens"] == 3


def test_a_failed_reply_is_kept_and_says_why(api, owner, url, scripted):
    scripted.status(500)
    answer = api(owner).post(url, {"content": "Hello"}, format="json")
    assert answer.status_code == 201
    assert answer.json()["reply"]["status"] == "failed"
    assert "provider" in answer.json()["reply"]["error"]
    assert api(owner).get(url).json()["results"][1] == answer.json()["reply"]


def test_without_a_reply_it_is_only_recorded(api, owner, url, scripted):
    answer = api(owner).post(url, {"content": "Note this.", "reply": False}, format="json")
    assert answer.status_code == 201
    assert answer.json()["reply"] is None
    assert answer.json()["message"]["author"] == "olive"
    assert scripted.requests == []


def test_a_recorded_message_takes_few_queries(api, owner, url, django_assert_max_num_queries):
    client = api(owner)
    for number in range(2):
        client.post(url, {"content": f"Note {number}.", "reply": False}, format="json")
    # Ten, and the commit.
    with django_assert_max_num_queries(11):
        client.post(url, {"content": "Note this.", "reply": False}, format="json")


def test_a_recorded_message_lists_its_alternatives(api, owner, session, url):
    first = post_message(session, "First", author=owner)
    others = [post_message(session, text, author=owner) for text in ("A", "B", "Gone", "Reply")]
    others[2].deleted_at = first.created_at
    others[3].role = "assistant"
    for message in others:
        message.parent = first
        message.save()
    Session.objects.update(head=first)
    answer = api(owner).post(url, {"content": "C", "reply": False}, format="json").json()["message"]
    assert answer["siblings"] == [str(others[0].pk), str(others[1].pk), answer["id"]]
    assert (answer["reactions"], answer["attachments"]) == ([], [])
    assert api(owner).get(url).json()["results"][-1] == answer


def test_a_program_records_messages_from_elsewhere(api, owner, url):
    client = api(owner)
    messages = [
        {"content": "Hi", "author": "Caroline", "created_at": "2023-05-08T13:56:00Z"},
        {"content": "Hello, Caroline", "role": "assistant", "created_at": "2023-05-08T13:57:00Z"},
    ]
    for message in messages:
        assert client.post(url, message | {"reply": False}, format="json").status_code == 201
    first, second = client.get(url).json()["results"]
    assert (first["author"], first["created_at"]) == ("Caroline", "2023-05-08T13:56:00Z")
    assert (second["author"], second["role"]) == ("Assistant", "assistant")
    assert second["parent"] == first["id"]
    assert (first["recorded_by"], second["recorded_by"]) == ("olive", "olive")
    for fields in ({}, {"author": "olive"}):
        body = {"content": "Mine", "reply": False} | fields
        answer = client.post(url, body, format="json").json()["message"]
        assert (answer["author"], answer["recorded_by"]) == ("olive", None)


def test_a_message_with_the_users_own_name_is_the_users_own(session, owner):
    owner.first_name, owner.last_name = "Olive", "Oyl"
    owner.save()
    names = ["", "olive", "Olive Oyl", "Caroline"]
    messages = [post_message(session, "Hi", author=owner, author_name=name) for name in names]
    assert [message.recorded_by for message in messages] == ["", "", "", "olive"]
    assert set(Message.objects.spoken_by(owner)) == set(messages[:3])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": "a\0b"}, "content"),
        ({"content": "Hi", "author": "Caroline"}, "author"),
        ({"content": "Hi", "role": "assistant"}, "role"),
        ({"content": "Hi", "reply": False, "role": "system"}, "role"),
        ({"content": "Hi", "reply": False, "created_at": "yesterday"}, "created_at"),
        ({"content": "Hi", "reply": False, "created_at": "1969-12-31T23:59:59Z"}, "created_at"),
        ({"content": "Hi", "reply": False, "created_at": "9999-12-31T23:59-12:00"}, "created_at"),
        ({"content": "Hi", "reply": False, "created_at": "0001-01-01T00:00+12:00"}, "created_at"),
        ({"content": "Hi", "reply": "perhaps"}, "reply"),
    ],
)
def test_invalid_fields_of_a_message_are_refused_by_name(api, owner, url, body, field):
    answer = api(owner).post(url, body, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == [field]
    assert not Message.objects.exists()


def test_readers_read_and_only_writers_write(api, viewer, stranger, url):
    assert api(viewer).get(url).status_code == 200
    assert api(viewer).post(url, {"content": "Hi"}, format="json").status_code == 404
    assert api(stranger).get(url).status_code == 404
    assert api(stranger).post(url, {"content": "Hi"}, format="json").status_code == 404


def test_a_private_session_is_its_creators(api, editor, session, url):
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert api(editor).get(url).status_code == 404
    assert api(editor).post(url, {"content": "Hi"}, format="json").status_code == 404


def test_a_former_member_reads_no_more(api, owner, url):
    Membership.objects.all().delete()
    assert api(owner).get(url).status_code == 404


def test_a_session_that_is_not_there_is_404(api, owner, session):
    for pk in ("0190163d-8694-739b-aea5-966c26f8ad91", "none"):
        answer = api(owner).get(f"/api/v1/sessions/{pk}/messages/")
        assert (answer.status_code, answer.json()) == (404, {"detail": "Not found."})


def test_a_closed_session_takes_no_message(api, owner, session, url):
    Session.objects.update(status="closed")
    answer = api(owner).post(url, {"content": "Hi"}, format="json")
    assert answer.status_code == 409
    assert "closed" in answer.json()["detail"]
    assert not Message.objects.exists()


def test_messages_come_in_order_page_by_page(api, owner, session, url):
    for number in range(5):
        post_message(session, str(number), author=owner)
    client = api(owner)
    first = client.get(url, {"page_size": 3}).json()
    second = client.get(first["next"]).json()
    contents = [result["content"] for result in first["results"] + second["results"]]
    assert contents == ["0", "1", "2", "3", "4"]
    assert second["next"] is None
    assert client.get(url, {"cursor": "cD1hYmM="}).status_code == 404


def test_listing_takes_the_same_queries_for_many(
    api, owner, session, url, django_assert_num_queries
):
    for number in range(30):
        post_message(session, str(number), author=owner)
    client = api(owner)
    # The token, the session, the messages, and their images, siblings and reactions.
    with django_assert_num_queries(6):
        assert len(client.get(url).json()["results"]) == 30


def test_of_many_alternatives_the_nearest_are_listed(api, session, owner):
    """An import can make thousands, and a page of messages would list all of them each time."""
    drafts = [draft("Again?", author=owner) for _ in range(250)]
    post_messages(session, drafts, at=PresetPlaces(drafts[-1].pk))
    answers = api(owner).get(f"/api/v1/sessions/{session.pk}/messages/?page_size=200")
    listed = [answer["siblings"] for answer in answers.json()["results"]]
    ids = [str(message.pk) for message in drafts]
    assert listed[0] == ids[:101]
    assert listed[120] == ids[20:221]
    last = api(owner).get(f"/api/v1/messages/{ids[-1]}/").json()
    assert last["siblings"] == ids[-101:]
