"""Admin lists hide private text, and opening it is logged."""

import pytest

from chat.models import Attachment, Message, MessageRevision, Session, Visibility
from memory.models import Activity, ActivityVerb, Entry, EntryRevision
from memory.moderation import entry_operations

pytestmark = pytest.mark.django_db

WORDS = "Nobody else knows"
HOLDING = (Session, Message, MessageRevision, Attachment, Entry, EntryRevision)


def page(model, what: str = "") -> str:
    return f"/admin/{model._meta.app_label}/{model._meta.model_name}/{what}"


def traces() -> list[tuple]:
    return list(
        Activity.objects.filter(verb=ActivityVerb.READ).values_list("by__username", "session_id")
    )


@pytest.fixture
def private(chat, remember, editor) -> Session:
    """A private chat whose every row holds WORDS."""
    Session.objects.update(visibility=Visibility.PRIVATE, title=WORDS)
    message = chat.messages.first()
    Message.objects.filter(pk=message.pk).update(text=WORDS)
    MessageRevision.objects.create(
        project=chat.project,
        message=message,
        version=1,
        text=WORDS,
        edited_by=editor,
        edited_at=message.created_at,
    )
    Attachment.objects.create(
        project=chat.project,
        session=chat,
        name=WORDS,
        media_type="image/png",
        width=1,
        height=1,
        size=1,
        sha256="0" * 64,
    )
    entry = remember(WORDS, chat)
    entry_operations.edit(entry, f"{WORDS}.", editor)
    return chat


@pytest.mark.parametrize("model", HOLDING)
def test_a_list_tells_no_private_text(admin_client, private, model):
    text = admin_client.get(page(model)).content.decode()
    assert "(private)" in text
    assert WORDS not in text
    assert traces() == []


@pytest.mark.parametrize("model", HOLDING)
def test_a_list_tells_shared_text(admin_client, private, model):
    Session.objects.update(visibility=Visibility.PROJECT)
    assert WORDS in admin_client.get(page(model)).content.decode()


@pytest.mark.parametrize("model", HOLDING)
def test_private_text_is_not_guessed_by_searching_for_it(admin_client, private, model):
    row = model.objects.first()
    listed = admin_client.get(page(model), {"q": "Nobody"}).content.decode()
    assert str(row.pk) not in listed
    Session.objects.update(visibility=Visibility.PROJECT)
    assert str(row.pk) in admin_client.get(page(model), {"q": "Nobody"}).content.decode()


@pytest.mark.parametrize("model", HOLDING)
def test_opening_private_text_leaves_a_trace(admin_client, admin_user, private, model):
    row = model.objects.filter().first()
    assert WORDS in admin_client.get(page(model, f"{row.pk}/change/")).content.decode()
    assert traces() == [(admin_user.username, private.pk)]


@pytest.mark.parametrize("model", HOLDING)
def test_opening_shared_text_leaves_no_trace(admin_client, private, model):
    Session.objects.update(visibility=Visibility.PROJECT)
    row = model.objects.first()
    assert admin_client.get(page(model, f"{row.pk}/change/")).status_code == 200
    assert traces() == []


def test_comparing_private_texts_and_editing_them_leaves_a_trace(admin_client, private):
    entry = Entry.objects.get()
    admin_client.get(page(Entry, f"{entry.pk}/texts/"))
    assert len(traces()) == 1
    chosen = {"action": "edit", "_selected_action": [entry.pk]}
    assert WORDS in admin_client.post(page(Entry), chosen).content.decode()
    assert len(traces()) == 2


def test_a_missing_object_leaves_no_trace(admin_client, private):
    missing = "0190163d-8694-739b-aea5-966c26f8ad91"
    admin_client.get(page(Message, f"{missing}/change/"))
    assert traces() == []


def test_the_rendered_bank_is_listed_without_its_text(admin_client, private, project):
    from memory.models import RenderedBank

    bank, _ = RenderedBank.objects.update_or_create(project=project, defaults={"text": WORDS})
    text = admin_client.get(page(RenderedBank, f"{bank.pk}/change/")).content.decode()
    assert WORDS not in text
