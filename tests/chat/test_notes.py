"""Notes: sessions of their own kind in which nothing is answered."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from django.db import connections

from chat.conversations import notes, sessions
from chat.conversations.messages import MAX_MESSAGE_CHARS
from chat.conversations.sessions import close_idle_sessions
from chat.importers import import_file
from chat.models import Message, Session, SessionKind, SessionStatus, Visibility
from projects.core.errors import InvalidInputError
from projects.services import create_project
from tests.chat.test_exports import exported

pytestmark = pytest.mark.django_db

CUTOVER = "The cutover is on 3 March."
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def note(project, editor) -> Message:
    return notes.add_note(project, editor, CUTOVER)


def texts(user, project) -> list[str]:
    return [note.text for note in notes.notes_for(user, project)]


def test_the_notes_of_one_author_are_one_shared_session(project, owner, editor, note):
    assert notes.add_note(project, editor, "And then?").session == note.session
    assert notes.add_note(project, owner, "Mine.").session != note.session
    note_session = note.session
    assert (note_session.kind, note_session.visibility, note_session.creator) == (
        "notes",
        Visibility.PROJECT,
        editor,
    )
    assert (note_session.title, note_session.title_by_hand) == ("Notes of edgar", True)
    assert (note.role, note.author, note.remembered) == ("user", editor, True)


def test_a_note_may_be_of_another_time(project, owner):
    assert notes.add_note(project, owner, CUTOVER, at=NOON).created_at == NOON


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Enter some text."),
        (" \n", "Enter some text."),
        ("\0", "Enter some text."),
        ("x" * (MAX_MESSAGE_CHARS + 1), "This note is too long: 500001 characters"),
    ],
)
def test_an_invalid_note_is_refused_and_leaves_nothing(project, owner, text, reason):
    with pytest.raises(InvalidInputError, match=reason):
        notes.add_note(project, owner, text)
    assert not Session.objects.exists()


def test_the_newest_come_first_by_the_time_they_are_of(project, owner, note):
    notes.add_note(project, owner, "Older.", at=NOON - timedelta(days=1))
    notes.add_note(project, owner, "Old.", at=NOON)
    notes.add_note(project, owner, "New.")
    assert texts(owner, project) == ["New.", CUTOVER, "Old.", "Older."]


def test_they_are_seen_by_members_and_by_nobody_else(project, viewer, stranger, note):
    other = create_project(stranger, name="Other")
    assert texts(viewer, project) == [CUTOVER]
    assert texts(stranger, project) == texts(stranger, other) == []


def test_private_notes_are_their_author_s_alone_and_stay_so(project, owner, editor, note):
    sessions.update_session(note.session, visibility=Visibility.PRIVATE)
    notes.add_note(project, editor, "Still mine.")
    assert texts(editor, project) == ["Still mine.", CUTOVER]
    assert texts(owner, project) == []


def test_a_closed_session_takes_no_more_notes(project, editor, note):
    sessions.update_session(note.session, status=SessionStatus.CLOSED)
    assert notes.add_note(project, editor, "And then?").session != note.session


def test_after_a_deletion_is_taken_back_the_first_session_goes_on(project, editor, note):
    sessions.delete_session(note.session)
    second = notes.add_note(project, editor, "In between.")
    assert second.session != note.session
    assert texts(editor, project) == ["In between."]
    sessions.restore_session(note.session_id)
    assert notes.add_note(project, editor, "Again.").session == note.session
    assert texts(editor, project) == ["Again.", "In between.", CUTOVER]


def test_silence_does_not_close_them(project, owner):
    at = datetime.now(UTC) - timedelta(days=90)
    note_session = notes.add_note(project, owner, CUTOVER, at=at).session
    Session.objects.update(last_activity_at=at)
    assert close_idle_sessions() == 0
    note_session.refresh_from_db()
    assert note_session.status == SessionStatus.ACTIVE


def test_an_export_comes_back_as_notes_and_takes_no_new_ones(owner, editor, project, note):
    file = exported(note.session)
    assert json.loads(file)["session"]["kind"] == "notes"
    other = create_project(owner, name="Other")
    import_file(other, owner, "notes.json", io.BytesIO(file), "strata")
    [back] = Session.objects.filter(project=other)
    assert back.kind == SessionKind.NOTES
    [other_note] = notes.notes_for(owner, other)
    assert (other_note.text, notes.author_name(other_note)) == (CUTOVER, "edgar")
    assert notes.add_note(other, owner, "Mine.").session != back


def test_an_export_without_a_kind_is_a_chat(owner, project, note):
    fields = json.loads(exported(note.session))
    del fields["session"]["kind"]
    other = create_project(owner, name="Other")
    file = io.BytesIO(json.dumps(fields).encode())
    import_file(other, owner, "notes.json", file, "strata")
    assert Session.objects.get(project=other).kind == SessionKind.CHAT


@pytest.mark.django_db(transaction=True)
def test_two_who_add_the_first_note_at_once_make_one_session(project, owner):
    together = Barrier(4)

    def add(number: int) -> None:
        try:
            together.wait(20)
            notes.add_note(project, owner, f"Note {number}")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as crowd:
        list(crowd.map(add, range(4)))
    assert Session.objects.count() == 1
    assert sorted(Message.objects.values_list("seq", flat=True)) == [1, 2, 3, 4]


class TestWhatIsAnswered:
    @pytest.mark.parametrize(
        "act",
        ["messages/{note}/regenerate/", "messages/{note}/rerun/", "sessions/{session}/messages/"],
    )
    def test_nothing_is_by_the_api(self, api, owner, note, act, scripted):
        url = act.format(note=note.pk, session=note.session_id)
        answer = api(owner).post(f"/api/v1/{url}", {"content": "When?"}, format="json")
        assert answer.status_code == 409
        assert answer.json() == {"detail": "Notes do not get replies."}
        assert scripted.requests == [] and Message.objects.count() == 1

    def test_notes_have_no_prompt_and_no_forks(self, api, owner, note):
        session = f"/api/v1/sessions/{note.session_id}"
        assert api(owner).get(f"{session}/prompt/").status_code == 409
        assert api(owner).post(f"{session}/fork/").status_code == 409
        assert Session.objects.count() == 1

    @pytest.mark.parametrize(
        "page",
        [
            "messages/{note}/regenerate/",
            "messages/{note}/rerun/",
            "messages/{note}/fork/",
            "projects/billing/chats/{session}/messages/",
        ],
    )
    def test_nothing_is_by_the_pages(self, client, owner, note, page, scripted):
        client.force_login(owner)
        url = page.format(note=note.pk, session=note.session_id)
        assert client.post(f"/{url}", {"content": "When?"}).status_code == 404
        assert scripted.requests == [] and Message.objects.count() == 1

    def test_notes_have_no_prompt_page(self, client, owner, note):
        client.force_login(owner)
        url = f"/projects/billing/chats/{note.session_id}/prompt/"
        assert client.get(url).status_code == 404


class TestListsOfChats:
    def test_the_api_leaves_notes_out_unless_asked(self, api, owner, note, session):
        client = api(owner)
        url = "/api/v1/projects/billing/sessions/"

        def listed(query: str = "") -> list[tuple[str, str]]:
            return [
                (result["id"], result["kind"])
                for result in client.get(url + query).json()["results"]
            ]

        assert listed() == listed("?kind=chat") == [(str(session.pk), "chat")]
        assert listed("?kind=notes") == [(str(note.session_id), "notes")]
        assert listed("?q=cutover+march") == []
        assert client.get(url + "?kind=other").status_code == 400

    def test_a_program_cannot_change_the_kind(self, api, owner, note):
        url = f"/api/v1/sessions/{note.session_id}/"
        assert api(owner).patch(url, {"kind": "chat"}, format="json").json()["kind"] == "notes"

    def test_the_pages_leave_notes_out(self, client, owner, note, session):
        client.force_login(owner)
        page = client.get("/projects/billing/").content.decode()
        assert "The cutover" in page and "Notes of edgar" not in page
        page = client.get("/projects/billing/?q=march").content.decode()
        assert "No chats found." in page

    def test_the_admin_filters_by_kind(self, admin_client, note, session):
        page = admin_client.get("/admin/chat/session/?kind__exact=notes").content.decode()
        assert "Notes of edgar" in page and "The cutover" not in page
        url = f"/admin/chat/session/{note.session_id}/change/"
        assert admin_client.get(url).status_code == 200
