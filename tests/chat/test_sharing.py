"""Links by which the members of a project read a chat, also a private one."""

from datetime import UTC, datetime

import pytest

from chat.conversations import edits
from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import delete_session, restore_session, share, update_session
from chat.models import Role, Session, Visibility
from projects.models import Membership

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat(project, editor) -> Session:
    """A private chat of the editor."""
    session = Session.objects.create(
        project=project, creator=editor, title="Salaries", visibility=Visibility.PRIVATE
    )
    texts = [draft("What do we pay?", author=editor), draft("**A lot.**", role=Role.ASSISTANT)]
    post_messages(session, texts)
    return session


@pytest.fixture
def link(client, chat, editor) -> str:
    client.force_login(editor)
    return client.post(f"/projects/billing/chats/{chat.pk}/share/")["Location"]


def status(client, user, path: str) -> int:
    client.force_login(user)
    return client.get(path).status_code


def test_every_member_reads_a_private_chat_by_its_link(client, chat, link, viewer):
    chat.messages.update(created_at=datetime(2020, 1, 1, 9, tzinfo=UTC))
    client.force_login(viewer)
    assert client.get(f"/projects/billing/chats/{chat.pk}/").status_code == 404
    response = client.get(link)
    page = response.content.decode()
    assert "Salaries" in page and "<strong>A lot.</strong>" in page
    assert "1 Jan 2020, 09:00" in page
    assert "What do we pay?" in page and "data-composer" not in page
    assert "Revoke link" not in page
    # No search engine, no list and no other page leads there.
    assert response["X-Robots-Tag"] == "noindex"
    assert link not in client.get("/projects/billing/").content.decode()


def test_strangers_and_guesses_get_404(client, link, stranger, viewer):
    assert status(client, stranger, link) == 404
    assert status(client, viewer, "/projects/billing/shared/guess/") == 404
    client.logout()
    assert client.get(link)["Location"].startswith("/accounts/login/")


def test_the_link_stays_the_same_until_it_is_revoked(client, chat, link, editor, viewer):
    client.force_login(editor)
    share = f"/projects/billing/chats/{chat.pk}/share/"
    assert client.post(share)["Location"] == link
    assert "Revoke link" in client.get(link).content.decode()
    client.post(share, {"action": "revoke"})
    assert status(client, viewer, link) == 404
    client.force_login(editor)
    assert client.post(share)["Location"] != link


def test_only_who_manages_a_chat_shares_it(client, chat, owner, viewer):
    for user in (owner, viewer):
        client.force_login(user)
        assert client.post(f"/projects/billing/chats/{chat.pk}/share/").status_code == 404
    assert Session.objects.get(pk=chat.pk).share_key == ""


def test_the_link_ends_with_the_chat_and_with_its_creators_membership(client, chat, link, viewer):
    delete_session(chat)
    assert status(client, viewer, link) == 404
    restore_session(chat.pk)
    assert status(client, viewer, link) == 200
    Membership.objects.filter(user=chat.creator).delete()
    assert status(client, viewer, link) == 404


def test_a_chat_that_is_made_private_loses_its_link(client, chat, link, viewer):
    update_session(chat, visibility=Visibility.PROJECT)
    assert status(client, viewer, link) == 200
    update_session(chat, visibility=Visibility.PRIVATE)
    assert status(client, viewer, link) == 404


def test_deleted_messages_are_not_shown(client, chat, link, viewer):
    edits.delete(chat.messages.get(seq=1))
    client.force_login(viewer)
    assert "What do we pay?" not in client.get(link).content.decode()


def test_a_key_with_a_nul_is_not_found(client, editor):
    assert status(client, editor, "/projects/billing/shared/%00/") == 404


def test_a_chat_that_is_made_private_meanwhile_gets_no_link(session):
    stale = Session.objects.get(pk=session.pk)
    Session.objects.filter(pk=session.pk).update(visibility=Visibility.PRIVATE)
    with pytest.raises(Session.DoesNotExist):
        share(stale)
    session.refresh_from_db()
    assert session.share_key == ""
