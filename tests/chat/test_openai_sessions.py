"""Conversations that programs name: whose they are, and what a lock makes of two at once."""

import threading
import time

import pytest
from django.core.files.storage import Storage, default_storage
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.attachments.images import reencode
from chat.conversations.messages import post_message
from chat.conversations.sessions import delete_session
from chat.models import Attachment, Message, Role, Session
from chat.openai_api import sessions
from chat.openai_api.sessions import SessionKey, continue_session, match_request
from chat.openai_api.transcript import TranscriptMessage
from tests.chat.pictures import picture


def ask(text: str) -> list[TranscriptMessage]:
    return [TranscriptMessage(Role.USER, text)]


@pytest.mark.django_db
def test_a_key_that_came_with_somebody_elses_conversation_is_let_go(project, owner, editor):
    key = SessionKey(project, owner, "crew")
    theirs = Session.objects.create(project=project, creator=editor, source_key=key.source_key)
    post_message(theirs, "This is mine.", author=editor)
    reply = continue_session(key, ask("Hello"), {})
    assert reply.session_id != theirs.pk
    assert key.find_session().pk == reply.session_id
    theirs.refresh_from_db()
    assert (theirs.last_seq, theirs.source_key) == (1, None)


@pytest.mark.django_db
def test_a_conversation_may_be_deleted_any_number_of_times(project, owner):
    key = SessionKey(project, owner, "crew")
    for number in range(3):
        reply = continue_session(key, ask(f"Round {number}"), {})
        assert list(reply.session.messages.values_list("seq", flat=True)) == [1, 2]
        delete_session(reply.session)
    assert key.find_session() is None
    assert Session.objects.count() == 3


@pytest.mark.django_db
def test_the_stored_path_is_read_once(project, owner):
    key = SessionKey(project, owner, "crew")
    continue_session(key, ask("Hello"), {})
    with CaptureQueriesContext(connection) as queries:
        continue_session(key, ask("And then?"), {})
    assert sum("RECURSIVE" in (query["sql"] or "") for query in queries) == 1


@pytest.mark.django_db
def test_a_hostile_request_of_30_kb_is_stored_at_once(project, owner):
    key = SessionKey(project, owner, "crew")
    continue_session(key, ask("Hello"), {})
    began = time.process_time()
    continue_session(key, ask("Hello" + "\n" * 30_000), {})
    assert time.process_time() - began < 3


class TestImages:
    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.fixture(autouse=True)
    def stored(self, monkeypatch) -> list[str]:
        """The paths of stored files. No transaction is open while a file is stored."""
        paths, save = [], Storage.save

        def record_and_save(storage, *args, **options):
            assert not connection.in_atomic_block
            paths.append(save(storage, *args, **options))
            return paths[-1]

        monkeypatch.setattr(Storage, "save", record_and_save)
        return paths

    @pytest.fixture
    def key(self, project, owner) -> SessionKey:
        return SessionKey(project, owner, "crew")

    def ask(self, key):
        """Ask about two images."""
        loaded = {"a": reencode(picture()), "b": reencode(picture(size=(50, 20)))}
        request = [TranscriptMessage(Role.USER, "What is this?", images=("a", "b"))]
        match = match_request(key.find_session(), request, loaded)
        return continue_session(key, request, loaded, match)

    def test_they_are_stored_before_the_session_is_locked(self, key, stored):
        reply = self.ask(key)
        images = Attachment.objects.filter(message=reply.parent).order_by("pk")
        assert [image.file.name for image in images] == stored
        assert [image.width for image in images] == [40, 50]

    def test_their_files_are_removed_if_the_message_is_not_stored(self, key, stored, monkeypatch):
        monkeypatch.setattr(sessions, "begin_reply", lambda message: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            self.ask(key)
        assert len(stored) == 2
        assert not any(default_storage.exists(path) for path in stored)
        assert not Attachment.objects.exists()

    def test_their_files_are_removed_if_the_session_changed_meanwhile(
        self, key, stored, monkeypatch
    ):
        session = self.ask(key).session
        stored.clear()
        find = SessionKey.find_session
        # The session was deleted when the request came. It is restored before it is locked.
        monkeypatch.setattr(SessionKey, "find_session", lambda key: None)
        reply = self.ask(key)
        monkeypatch.setattr(SessionKey, "find_session", find)
        assert reply.session_id == session.pk
        assert len(stored) == 2
        assert [default_storage.exists(path) for path in stored] == [False, False]
        assert Attachment.objects.filter(session=session).count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_new_to_many_at_once_is_one_conversation(project, owner):
    def speak(number: int) -> None:
        continue_session(SessionKey(project, owner, "crew"), ask(f"Question {number}"), {})
        connection.close()

    writers = [threading.Thread(target=speak, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    session = Session.objects.get()
    assert list(session.messages.order_by("seq").values_list("seq", flat=True)) == [*range(1, 17)]
    for reply in Message.objects.filter(role=Role.ASSISTANT).select_related("parent"):
        assert (reply.parent.role, reply.parent.seq) == (Role.USER, reply.seq - 1)
