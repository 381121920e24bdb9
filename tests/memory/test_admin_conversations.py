"""Moderators edit, hide, delete and forget messages and chats in the admin."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission

from chat.models import Message, MessageRevision, Session
from memory.models import Activity, ActivityVerb, Chunk, Entry

pytestmark = pytest.mark.django_db

MESSAGES, SESSIONS = "/admin/chat/message/", "/admin/chat/session/"


@pytest.fixture
def message(chat) -> Message:
    return chat.messages.get(seq=1)


@pytest.fixture
def staff(client, person):
    def sign_in(*codenames: str):
        user = person("mona")
        user.is_staff = True
        user.save()
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(user)
        return client

    return sign_in


def act(client, row: Message | Session, action: str, **more):
    path = MESSAGES if isinstance(row, Message) else SESSIONS
    return client.post(path, {"action": action, "_selected_action": [row.pk]} | more, follow=True)


def edit(client, message: Message, text: str, version: int = 1):
    data = {"text": text, "version": version}
    return client.post(f"{MESSAGES}{message.pk}/change/", data, follow=True)


def verbs() -> list[str]:
    return list(Activity.objects.exclude(by=None).order_by("pk").values_list("verb", flat=True))


def test_an_edit_keeps_the_former_text_and_reports_a_stale_version(
    admin_client, admin_user, message, entry
):
    former = message.text
    assert edit(admin_client, message, "Does the replica stay?").status_code == 200
    message.refresh_from_db()
    assert (message.text, message.version) == ("Does the replica stay?", 2)
    revision = MessageRevision.objects.get()
    assert (revision.text, revision.edited_by) == (former, admin_user)
    assert Entry.objects.get().state == "stale" and verbs() == ["edited"]
    answer = edit(admin_client, message, "Too late", version=1).content.decode()
    assert "has changed since you opened it" in answer and "Too late" in answer
    edit(admin_client, message, " ", version=2)
    message.refresh_from_db()
    assert message.text == "Does the replica stay?"
    assert LogEntry.objects.filter(object_id=str(message.pk)).count() == 1


def test_a_hidden_message_is_shown_again(admin_client, message, entry):
    act(admin_client, message, "hide")
    message.refresh_from_db()
    assert message.hidden_at == message.deleted_at is not None
    assert Entry.objects.get().withheld
    assert "This message was deleted" in act(admin_client, message, "hide").content.decode()
    act(admin_client, message, "show")
    message.refresh_from_db()
    assert message.hidden_at is message.deleted_at is None and message.text
    assert "is not hidden" in act(admin_client, message, "show").content.decode()
    assert verbs() == ["hidden", "shown"]


def test_readers_of_a_chat_see_that_a_message_was_hidden(admin_client, client, owner, message):
    act(admin_client, message, "hide")
    client.force_login(owner)
    page = client.get(f"/projects/{message.project.slug}/chats/{message.session_id}/")
    text = page.content.decode()
    assert "Hidden by a moderator on" in text and message.text not in text


def test_deleting_asks_first_and_cannot_be_undone(admin_client, message):
    assert "This cannot be undone" in act(admin_client, message, "delete").content.decode()
    message.refresh_from_db()
    assert message.deleted_at is None
    act(admin_client, message, "hide")
    act(admin_client, message, "delete", confirmed="yes")
    act(admin_client, message, "show")
    message.refresh_from_db()
    assert message.deleted_at is not None and message.hidden_at is None
    assert verbs() == ["hidden", "deleted"]


def test_forgetting_a_message_leaves_a_receipt(admin_client, admin_user, message, entry):
    assert "Forget permanently" in act(admin_client, message, "forget").content.decode()
    act(admin_client, message, "forget", confirmed="yes", reason="private")
    message.refresh_from_db()
    assert message.text == "" and message.forgotten_at is not None
    receipt = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    assert (receipt.by, receipt.reason) == (admin_user, "private")
    assert receipt.receipt["removed"]["messages"] == 2


def test_a_chat_is_closed_deleted_and_forgotten(admin_client, chat):
    act(admin_client, chat, "close")
    chat.refresh_from_db()
    assert chat.status == "closed"
    assert "is closed" in act(admin_client, chat, "close").content.decode()
    act(admin_client, chat, "delete")
    chat.refresh_from_db()
    assert chat.deleted_at is None
    act(admin_client, chat, "delete", confirmed="yes")
    chat.refresh_from_db()
    assert chat.deleted_at is not None
    act(admin_client, chat, "forget", confirmed="yes", reason="requested")
    assert not Session.objects.exists() and not Chunk.objects.exists()
    assert verbs() == ["chat_closed", "deleted", "forgotten"]


def test_a_form_of_a_chat_changes_settings_as_its_page_does(admin_client, chat, entry):
    Entry.objects.update(written_by="extractive")
    data = {"title": "The move", "visibility": "private", "status": "closed", "remembered": "on"}
    admin_client.post(f"{SESSIONS}{chat.pk}/change/", data)
    before, chat = chat.version, Session.objects.get()
    assert (chat.title, chat.title_by_hand, chat.version) == ("The move", True, before + 1)
    # Quotations of a private chat wait for review.
    assert Entry.objects.get().state == "proposed" and verbs() == ["chat_closed"]


def test_staff_who_may_only_view_change_nothing(staff, message, chat):
    client = staff("view_message", "view_session")
    page = client.get(f"{MESSAGES}{message.pk}/change/").content.decode()
    assert message.text in page and "<textarea" not in page and 'value="hide"' not in page
    assert edit(client, message, "Changed").status_code == 403
    for action in ("hide", "delete", "forget"):
        act(client, message, action, confirmed="yes", reason="other")
    for action in ("close", "delete", "forget"):
        act(client, chat, action, confirmed="yes", reason="other")
    message.refresh_from_db()
    chat.refresh_from_db()
    assert message.version == 1 and message.deleted_at is chat.deleted_at is None
    assert chat.status == "active" and verbs() == []


def test_the_change_permission_does_not_allow_to_delete(staff, message):
    client = staff("view_message", "change_message")
    for action in ("delete", "forget"):
        act(client, message, action, confirmed="yes", reason="other")
    act(client, message, "hide")
    assert verbs() == ["hidden"]
