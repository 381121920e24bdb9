"""How a chat is kept, changed on its page."""

import re

import pytest

from chat.conversations.messages import ask, post_message
from chat.conversations.sessions import update_session
from chat.models import Session, Visibility
from chat.models.sessions import SessionStatus
from tests.chat.pages.page_content import page

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_chat_is_renamed_shared_and_kept_out_of_memory(client, owner, session, url):
    client.force_login(owner)
    form = {"title": "Renamed", "visibility": "private", "status": "active"}
    # The box was ticked when the page was made.
    form |= {"initial-remembered": "True", "initial-history_limit": ""}
    assert client.post(f"{url}edit/", form).status_code == 302
    before = session.version
    session.refresh_from_db()
    assert (session.title, session.visibility) == ("Renamed", Visibility.PRIVATE)
    assert not session.remembered
    assert session.version > before


def test_another_editor_does_not_change_my_chat(client, editor, session, url):
    assert "Chat settings" not in page(client, editor, url)
    form = {"title": "Mine now", "visibility": "project", "status": "active"}
    assert client.post(f"{url}edit/", form).status_code == 404


def test_a_wrong_visibility_is_refused_on_the_page(client, owner, session, url):
    client.force_login(owner)
    form = {"title": "x", "visibility": "everyone", "status": "active"}
    response = client.post(f"{url}edit/", form)
    assert response.status_code == 400
    assert "not one of the available choices" in response.content.decode()


def test_a_closed_chat_takes_no_more(client, owner, session, url):
    Session.objects.update(status=SessionStatus.CLOSED)
    text = page(client, owner, url)
    assert "This chat is closed" in text
    assert 'name="content"' not in text
    assert client.post(f"{url}messages/", {"content": "Hello"}).status_code == 404


def test_a_closed_chat_is_opened_again_by_who_keeps_it(client, owner, editor, session, url):
    update_session(session, status=SessionStatus.CLOSED)
    client.force_login(editor)
    assert client.post(f"{url}reopen/").status_code == 404
    client.force_login(owner)
    assert client.get(f"{url}reopen/").status_code == 405
    before = session.version
    assert client.post(f"{url}reopen/")["Location"] == f"{url}#latest"
    session.refresh_from_db()
    assert (session.status, session.version) == (SessionStatus.ACTIVE, before + 1)


def test_a_chat_is_pinned_archived_limited_and_closed(client, owner, session, url):
    client.force_login(owner)
    form = {"title": "The cutover", "visibility": "project", "status": "closed"}
    form |= {"pinned": "on", "archived": "on", "history_limit": "7", "remembered": "on"}
    assert client.post(f"{url}edit/", form).status_code == 302
    session.refresh_from_db()
    assert (session.pinned, session.status, session.history_limit) == (True, "closed", 50)
    assert session.archived_at
    assert session.remembered


def test_an_old_page_of_settings_undoes_nothing(client, owner, session, url):
    text = page(client, owner, url)
    initial_fields = dict(re.findall(r'name="(initial-\w+)" value="([^"]*)"', text))
    update_session(session, title="Somebody else’s", pinned=True)
    form = {"title": "The cutover", "visibility": "private", "status": "active"}
    client.post(f"{url}edit/", form | initial_fields | {"remembered": "on"})
    session.refresh_from_db()
    assert (session.title, session.pinned) == ("Somebody else’s", True)
    assert (session.visibility, session.remembered) == (Visibility.PRIVATE, True)


def test_a_chat_is_cleared_and_deleted_once_that_is_confirmed(client, owner, session, url):
    post_message(session, "When?", author=owner)
    assert "Clear this chat?" in page(client, owner, f"{url}clear/")
    assert client.post(f"{url}clear/")["Location"] == url
    assert "No messages yet." in page(client, owner, url)
    assert "Delete this chat?" in page(client, owner, f"{url}delete/")
    assert client.post(f"{url}delete/")["Location"] == "/projects/billing/"
    assert not Session.objects.not_deleted().exists()


def test_a_chat_is_not_cleared_while_a_reply_is_unfinished(client, owner, session, url):
    ask(session, "When?", owner)
    client.force_login(owner)
    text = client.post(f"{url}clear/", follow=True).content.decode()
    assert "Stop the reply first." in text


def test_another_editor_neither_clears_nor_deletes_my_chat(client, editor, session, url):
    client.force_login(editor)
    for action in ("clear", "delete"):
        assert client.get(f"{url}{action}/").status_code == 404
        assert client.post(f"{url}{action}/").status_code == 404
    assert Session.objects.exists()
