"""A chat that was deleted is brought back within ten minutes, by who may manage it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from chat.conversations.sessions import (
    UNDO_WINDOW,
    create_session,
    delete_session,
    purge_deleted,
)
from chat.models import Session, Visibility
from chat.signals import session_expired

pytestmark = pytest.mark.django_db

CHATS = "/projects/billing/"


@pytest.fixture
def deleted(session):
    delete_session(session)
    return session


def standing() -> bool:
    return Session.objects.not_deleted().exists()


def expire() -> None:
    late = timezone.now() - UNDO_WINDOW - timedelta(seconds=1)
    Session.objects.update(deleted_at=late)


def test_the_user_who_deleted_a_chat_is_offered_an_undo(client, editor, session):
    client.force_login(editor)
    page_text = client.post(f"{CHATS}chats/{session.pk}/delete/", follow=True).content.decode()
    restore = f"{CHATS}chats/{session.pk}/restore/"
    assert "“The cutover” was deleted." in page_text
    assert restore in page_text
    response = client.post(restore, follow=True)
    assert response.redirect_chain == [(f"{CHATS}chats/{session.pk}/", 302)]
    assert standing()
    assert restore not in client.get(CHATS).content.decode()


def test_a_chat_that_cannot_be_purged_does_not_stop_the_others(project, editor):
    sessions = [create_session(project, editor) for _ in range(2)]
    for session in sessions:
        delete_session(session)
    expire()

    def fail(session, **kwargs) -> None:
        if session.pk == sessions[0].pk:
            raise ValueError

    session_expired.connect(fail)
    try:
        assert purge_deleted() == 1
    finally:
        session_expired.disconnect(fail)
    assert [*Session.objects.filter(pk__in=[it.pk for it in sessions])] == [sessions[0]]


def test_nobody_else_is_offered_it_nor_anybody_too_late(client, owner, editor, session):
    client.force_login(editor)
    client.post(f"{CHATS}chats/{session.pk}/delete/")
    expire()
    assert "Undo" not in client.get(CHATS).content.decode()
    Session.objects.update(deleted_at=timezone.now())
    client.force_login(owner)
    assert "Undo" not in client.get(CHATS).content.decode()


def test_too_late_it_is_gone(client, api, editor, deleted):
    expire()
    client.force_login(editor)
    assert client.post(f"{CHATS}chats/{deleted.pk}/restore/").status_code == 404
    assert api(editor).post(f"/api/v1/sessions/{deleted.pk}/restore/").status_code == 404
    assert not standing()


def test_the_api_restores_it(api, editor, deleted):
    response = api(editor).post(f"/api/v1/sessions/{deleted.pk}/restore/")
    assert response.status_code == 200
    assert response.json()["title"] == "The cutover"
    assert standing()


def test_a_chat_that_was_not_deleted_is_not_restored(api, editor, session):
    assert api(editor).post(f"/api/v1/sessions/{session.pk}/restore/").status_code == 404


def test_only_who_may_manage_it_restores_it(
    client, api, owner, editor, viewer, stranger, person, project, deleted
):
    from projects.models import Membership

    other = person("enno")
    Membership.objects.create(project=project, user=other, role="editor")
    for user in (other, viewer, stranger):
        client.force_login(user)
        assert client.post(f"{CHATS}chats/{deleted.pk}/restore/").status_code == 404
        assert api(user).post(f"/api/v1/sessions/{deleted.pk}/restore/").status_code == 404
    assert not standing()
    assert api(owner).post(f"/api/v1/sessions/{deleted.pk}/restore/").status_code == 200


def test_a_private_one_is_for_who_began_it(api, owner, editor, deleted):
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert api(owner).post(f"/api/v1/sessions/{deleted.pk}/restore/").status_code == 404
    assert api(editor).post(f"/api/v1/sessions/{deleted.pk}/restore/").status_code == 200


def test_a_token_of_another_project_does_not_reach_it(api, owner, deleted):
    from projects.services import create_project

    other = create_project(owner, name="Other")
    client = api(owner, project=other)
    assert client.post(f"/api/v1/sessions/{deleted.pk}/restore/").status_code == 404
