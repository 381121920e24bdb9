"""The page of a project's notes, and the way back to it."""

import re

import pytest

from chat.conversations import edits, notes, sessions
from chat.conversations.messages import MAX_MESSAGE_CHARS
from chat.models import Message, Visibility
from chat.views import notes as note_views
from tests.html import compact

pytestmark = pytest.mark.django_db

URL = "/projects/billing/notes/"
CUTOVER = "The cutover is on 3 March."


@pytest.fixture
def note(project, editor) -> Message:
    return notes.add_note(project, editor, CUTOVER)


def page(client, user, query: str = "") -> str:
    client.force_login(user)
    answer = client.get(URL + query)
    assert answer.status_code == 200
    return answer.content.decode()


def place(note) -> str:
    return f"{URL}?at={note.pk}#note-{note.pk}"


def test_a_note_is_added_to_the_letter_and_shown_at_its_place(client, editor, project):
    client.force_login(editor)
    answer = client.post(URL, {"text": "  On 3 March:\r\n<b>cutover</b>"})
    [note] = Message.objects.all()
    assert note.text == "  On 3 March:\n<b>cutover</b>"
    assert answer.url == place(note)
    page_text = client.get(answer.url).content.decode()
    assert f'id="note-{note.pk}"' in page_text
    assert "&lt;b&gt;cutover&lt;/b&gt;" in page_text
    assert 'aria-current="page" href="/projects/billing/notes/"' in compact(page_text)


def test_a_refused_note_keeps_its_text(client, editor, project):
    client.force_login(editor)
    answer = client.post(URL, {"text": " \n"})
    assert answer.status_code == 400
    assert "Enter some text." in answer.content.decode()
    answer = client.post(URL, {"text": "x" * (MAX_MESSAGE_CHARS + 1)})
    assert answer.status_code == 400
    assert "This message is too long" in answer.content.decode()
    assert "x" * MAX_MESSAGE_CHARS in answer.content.decode()
    assert not Message.objects.exists()


def test_viewers_read_only(client, viewer, note):
    page_text = page(client, viewer)
    assert CUTOVER in page_text
    assert "<textarea" not in page_text
    assert f"/messages/{note.pk}/" not in page_text and "Forget…" not in page_text
    assert client.post(URL, {"text": "Mine."}).status_code == 404


def test_writers_may_change_their_own_and_owners_all(client, owner, editor, project, note):
    other = notes.add_note(project, owner, "Of the owner.")
    page_text = page(client, editor)
    assert f"/messages/{note.pk}/edit/" in page_text and f"?message={note.pk}" in page_text
    assert (
        f"/messages/{other.pk}/edit/" not in page_text and f"?message={other.pk}" not in page_text
    )
    page_text = page(client, owner)
    assert f"/messages/{note.pk}/delete/" in page_text and f"?message={note.pk}" in page_text


def test_a_stranger_gets_404(client, stranger, note):
    client.force_login(stranger)
    assert client.get(URL).status_code == client.post(URL, {"text": "Me."}).status_code == 404


def test_private_notes_are_shown_to_their_author_alone(client, owner, editor, note):
    sessions.update_session(note.session, visibility=Visibility.PRIVATE)
    assert CUTOVER in page(client, editor)
    assert CUTOVER not in page(client, owner)


def test_an_edited_note_comes_back_at_its_place(client, editor, note):
    client.force_login(editor)
    editing = client.get(f"/messages/{note.pk}/edit/").content.decode()
    assert "Send again" not in editing and "Back to notes" in editing
    answer = client.post(f"/messages/{note.pk}/edit/", {"content": "On 4 March.", "version": "1"})
    assert answer.url == place(note)
    page_text = client.get(answer.url).content.decode()
    assert "On 4 March." in page_text and f"/messages/{note.pk}/revisions/" in page_text


def test_a_deleted_note_leaves_the_page(client, editor, note):
    client.force_login(editor)
    assert "Delete this note?" in client.get(f"/messages/{note.pk}/delete/").content.decode()
    answer = client.post(f"/messages/{note.pk}/delete/")
    assert answer.url == place(note)
    assert CUTOVER not in client.get(answer.url).content.decode()


def test_links_to_the_session_lead_to_the_note(client, viewer, note):
    client.force_login(viewer)
    chat = f"/projects/billing/chats/{note.session_id}/"
    assert client.get(f"{chat}?through=1").url == place(note)
    assert client.get(chat).url == URL
    assert client.get(f"{chat}?part=turns&since=1").url == URL
    assert client.get(f"{chat}?through=9").status_code == 404


def test_a_note_is_on_the_page_that_its_link_opens(client, editor, project, monkeypatch):
    monkeypatch.setattr(note_views, "NOTES_PER_PAGE", 2)
    added = [notes.add_note(project, editor, f"Note number {number}.") for number in range(5)]
    for number, item in enumerate(added):
        assert f"Note number {number}." in page(client, editor, f"?at={item.pk}")
    edits.delete(added[0])
    assert "Note number 1." in page(client, editor, f"?at={added[0].pk}")
    assert "Note number 4." in page(client, editor, "?at=01a1f000-0000-7000-8000-000000000000")
    assert client.get(f"{URL}?at=x").status_code == 404
    older = re.search(r'href="(\?[^"]*page=2[^"]*)"', page(client, editor, f"?at={added[4].pk}"))
    assert older is not None and "at=" not in older[1]


def test_words_are_searched_for(client, editor, project, note):
    notes.add_note(project, editor, "The platform team owns billing.")
    page_text = page(client, editor, "?q=march")
    assert "3 <mark>March</mark>" in page_text and "platform" not in page_text
    assert "No notes found." in page(client, editor, "?q=april")


def test_an_author_s_notes_can_be_taken_along(client, editor, viewer, note):
    link = f"/projects/billing/chats/{note.session_id}/export/?format=json"
    assert link in page(client, editor)
    assert client.get(link).status_code == 200
    assert link not in page(client, viewer)


def test_many_take_no_more_queries(client, owner, editor, project, django_assert_num_queries):
    client.force_login(owner)
    for number in range(12):
        notes.add_note(project, (owner, editor)[number % 2], f"Note {number}")
    with django_assert_num_queries(7):
        assert client.get(URL).status_code == 200
