"""Archive and delete several chats of the project's page at once."""

from datetime import timedelta

import pytest

from chat.models import Session
from chat.views import bulk
from tests.chat.pages.page_content import page

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/projects/billing/chats/bulk/"
LIST = "/projects/billing/"


@pytest.fixture
def chats(project, owner, editor) -> list[Session]:
    """Two chats of the editor and one of the owner."""
    return [
        Session.objects.create(project=project, creator=creator, title=title)
        for title, creator in (("Tides", editor), ("Gauges", editor), ("Budget", owner))
    ]


def ids(*chats: Session) -> list[str]:
    return [str(chat.pk) for chat in chats]


def test_chats_are_archived_and_brought_back(client, editor, chats):
    client.force_login(editor)
    answer = client.post(URL, {"chats": ids(*chats[:2]), "action": "archive"}, follow=True)
    assert "2 chats were archived." in answer.content.decode()
    assert set(Session.objects.exclude(archived_at=None)) == set(chats[:2])
    archived = page(client, editor, f"{LIST}?archived")
    assert "Tides" in archived and 'value="unarchive"' in archived
    client.post(URL, {"chats": ids(chats[0]), "action": "unarchive"})
    assert set(Session.objects.exclude(archived_at=None)) == {chats[1]}


def test_deletion_is_confirmed_first(client, owner, chats):
    client.force_login(owner)
    selected = {"chats": ids(chats[0], chats[2]), "action": "delete"}
    answer = client.post(URL, selected)
    text = answer.content.decode()
    assert "Delete these 2 chats?" in text
    assert [f'value="{chat.pk}"' in text for chat in chats] == [True, False, True]
    assert not Session.objects.exclude(deleted_at=None).exists()
    client.post(URL, selected | {"confirmed": "true"})
    assert set(Session.objects.exclude(deleted_at=None)) == {chats[0], chats[2]}


@pytest.mark.parametrize("action", ["archive", "delete"])
def test_a_bulk_action_is_undone_once(client, editor, chats, action):
    client.force_login(editor)
    selected = {"chats": ids(*chats[:2]), "action": action, "confirmed": "true"}
    assert 'value="undo"' in client.post(URL, selected, follow=True).content.decode()
    chats[1].refresh_from_db()
    answer = client.post(URL, {"action": "undo"}, follow=True).content.decode()
    assert "Undone for 2 chats." in answer and 'value="undo"' not in answer
    assert Session.objects.filter(archived_at=None, deleted_at=None).count() == 3
    answer = client.post(URL, {"action": "undo"}, follow=True).content.decode()
    assert "This can no longer be undone." in answer


def test_only_the_same_browser_undoes_and_not_forever(client, owner, editor, chats, monkeypatch):
    client.force_login(editor)
    client.post(URL, {"chats": ids(*chats[:2]), "action": "archive"})
    client.force_login(owner)
    client.post(URL, {"action": "undo"})
    assert Session.objects.exclude(archived_at=None).count() == 2
    client.post(URL, {"chats": ids(chats[2]), "action": "archive"})
    monkeypatch.setattr(bulk, "UNDO_WINDOW", timedelta(0))
    assert 'value="undo"' not in client.get(LIST).content.decode()
    client.post(URL, {"action": "undo"})
    assert Session.objects.exclude(archived_at=None).count() == 3


def test_nothing_happens_if_one_of_them_is_not_yours(client, editor, chats):
    client.force_login(editor)
    answer = client.post(URL, {"chats": ids(*chats), "action": "archive"}, follow=True)
    assert "Select the chats and an action." in answer.content.decode()
    assert not Session.objects.exclude(archived_at=None).exists()


@pytest.mark.parametrize(
    "sent", [{}, {"action": "archive"}, {"chats": ["nonsense"], "action": "archive"}]
)
def test_nonsense_changes_nothing(client, owner, chats, sent):
    client.force_login(owner)
    client.post(URL, sent | {"confirmed": "true"})
    client.post(URL, {"chats": ids(*chats), "action": "burn"})
    assert not Session.objects.exclude(archived_at=None, deleted_at=None).exists()


def test_only_chats_that_you_may_manage_have_a_checkbox(client, owner, editor, viewer, chats):
    def boxes(user) -> set[str]:
        text = page(client, user, LIST)
        return {chat.title for chat in chats if f'value="{chat.pk}"' in text}

    assert boxes(owner) == {"Tides", "Gauges", "Budget"}
    assert boxes(editor) == {"Tides", "Gauges"}
    assert boxes(viewer) == set()
    assert "data-bulk" not in page(client, viewer, LIST)


def test_a_viewer_gets_404(client, viewer, chats):
    client.force_login(viewer)
    assert client.post(URL, {"chats": ids(*chats), "action": "archive"}).status_code == 404
