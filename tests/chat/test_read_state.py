"""The dot beside a chat with unread messages."""

import pytest

from chat.conversations.messages import post_message
from chat.models import Seen, Visibility

pytestmark = pytest.mark.django_db


@pytest.fixture
def shared(session):
    session.visibility = Visibility.PROJECT
    session.save()
    return session


def dots(client, user) -> int:
    client.force_login(user)
    return client.get("/projects/billing/").content.decode().count('class="unread"')


def visit(client, user, session, query: str = "") -> None:
    client.force_login(user)
    url = f"/projects/billing/chats/{session.pk}/{query}"
    assert client.get(url).status_code == 200


def test_a_dot_stands_by_what_came_since(client, owner, editor, shared):
    post_message(shared, "When?", author=owner)
    visit(client, editor, shared)
    assert dots(client, editor) == 0
    post_message(shared, "Is nobody here?", author=owner)
    assert dots(client, editor) == 1
    # The page itself, brought up to date, counts as seen.
    visit(client, editor, shared, "?part=turns")
    assert dots(client, editor) == 0
    assert Seen.objects.count() == 1


def test_unopened_chats_and_older_parts_have_no_unread_dot(client, owner, editor, shared):
    for number in range(60):
        post_message(shared, f"Number {number}.", author=owner)
    assert dots(client, editor) == 0
    visit(client, editor, shared, "?through=5")
    assert not Seen.objects.exists()


def test_the_chat_that_is_open_has_no_dot(client, owner, editor, shared):
    visit(client, editor, shared)
    post_message(shared, "When?", author=owner)
    client.force_login(editor)
    page = client.get(f"/projects/billing/chats/{shared.pk}/").content.decode()
    assert 'class="unread"' not in page
