"""/api/v1/messages/{id}/receipt/: the contents of a reply's prompt."""

import pytest

from chat.models import Message

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reply(api, editor, session, scripted) -> str:
    url = f"/api/v1/sessions/{session.pk}/messages/"
    return api(editor).post(url, {"content": "When?"}, format="json").json()["reply"]["id"]


def url(pk: object) -> str:
    return f"/api/v1/messages/{pk}/receipt/"


def test_it_names_the_sections_and_what_stood_in_them(api, viewer, reply):
    payload = api(viewer).get(url(reply)).json()
    assert payload["budget"] > 0
    names = [section["name"] for section in payload["sections"]]
    assert (names[0], names[-1]) == ("persona", "message")
    [item] = payload["sections"][-1]["items"]
    message = Message.objects.get(role="user")
    assert (item["kind"], item["id"], item["revision"]) == ("message", str(message.pk), 1)
    assert "When?" not in str(payload)


def test_a_message_that_is_no_reply_has_no_receipt(api, viewer, reply):
    message = Message.objects.get(role="user")
    assert api(viewer).get(url(message.pk)).status_code == 404


def test_strangers_get_404(api, stranger, reply):
    assert api(stranger).get(url(reply)).status_code == 404
