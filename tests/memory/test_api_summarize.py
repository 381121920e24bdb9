"""/api/v1/sessions/{id}/summarize/: a summary now."""

from datetime import UTC, datetime
from threading import Timer
from uuid import UUID

import pytest
from django.db import connection

from chat.conversations.messages import post_message
from chat.models import Session, Visibility
from memory import leases, summary_requests
from memory.layers.conversations import summarise
from memory.models import Cursor
from memory.tasks import summarise_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    """A session with something to summarise."""
    chat_session = Session.objects.create(
        project=project, creator=owner, visibility=Visibility.PROJECT
    )
    post_message(chat_session, "The cutover is on 3 March.", author=owner)
    return chat_session


@pytest.fixture
def queued(monkeypatch) -> list[tuple]:
    calls: list[tuple] = []
    monkeypatch.setattr(summary_requests, "SUMMARY_WAIT_S", 0)
    monkeypatch.setattr(summarise_session, "delay", lambda *args, **how: calls.append((args, how)))
    return calls


def url(pk) -> str:
    return f"/api/v1/sessions/{pk}/summarize/"


def refused(reason: str) -> tuple[int, dict]:
    return 409, {"queued": False, "reason": reason, "detail": reason}


def test_a_writer_has_it_summarised_now(api, editor, session, queued):
    answer = api(editor).post(url(session.pk))
    assert (answer.status_code, answer.json()) == (202, {"queued": True, "running": False})
    assert queued == [((str(session.pk),), {"force": True})]


def test_an_entry_that_is_written_soon_is_the_answer(api, editor, session, monkeypatch):
    def write(pk: str, force: bool) -> None:
        Timer(0.3, in_thread, [pk]).start()

    def in_thread(pk: str) -> None:
        summarise(UUID(pk), datetime.now(UTC), force=True)
        connection.close()

    monkeypatch.setattr(summarise_session, "delay", write)
    answer = api(editor).post(url(session.pk))
    [entry] = session.entries.all()
    assert (answer.status_code, answer.json()["id"]) == (200, str(entry.pk))
    assert answer.json()["lines"][0]["messages"] == [str(session.messages.get().pk)]


def test_while_the_broker_is_away_it_says_so(api, editor, session, monkeypatch):
    def away(*_, **how):
        raise ConnectionError("away")

    monkeypatch.setattr(summarise_session, "delay", away)
    answer = api(editor).post(url(session.pk))
    assert (answer.status_code, answer.json()["queued"]) == (503, False)
    assert "cannot be started now" in answer.json()["detail"]


def test_while_somebody_is_at_it_nothing_is_queued(api, editor, session, queued):
    lease = leases.claim(Cursor.objects.all(), session.pk)
    answer = api(editor).post(url(session.pk))
    assert (answer.status_code, answer.json()) == (202, {"queued": False, "running": True})
    assert queued == []
    lease.release()
    assert api(editor).post(url(session.pk)).json()["queued"]


def test_a_failed_summary_is_retried_at_once(api, editor, session, queued):
    leases.claim(Cursor.objects.all(), session.pk).fail("The model did not answer in time.")
    assert api(editor).post(url(session.pk)).json()["queued"]


def test_once_all_is_summarised_there_is_nothing_new(api, editor, session, queued):
    assert summarise(session.pk, datetime.now(UTC), force=True)
    answer = api(editor).post(url(session.pk))
    expected = refused("There is nothing new to summarise.")
    assert (answer.status_code, answer.json()) == expected
    assert queued == []


def test_a_session_without_messages_has_nothing_to_summarise(api, owner, project, queued):
    empty = Session.objects.create(project=project, creator=owner)
    assert api(owner).post(url(empty.pk)).json()["reason"] == "There is nothing new to summarise."


def test_a_project_without_memory_says_so(api, editor, project, session, queued):
    project.memory_enabled = False
    project.save()
    answer = api(editor).post(url(session.pk))
    assert (answer.status_code, answer.json()) == refused("The project's memory is off.")
    assert queued == []


def test_an_archived_project_says_so(api, editor, project, session, queued):
    project.archived_at = datetime.now(UTC)
    project.save()
    answer = api(editor).post(url(session.pk))
    assert (answer.status_code, "archived" in answer.json()["detail"]) == (409, True)
    assert queued == []


def test_a_session_that_is_not_remembered_says_so(api, owner, project, queued):
    secret = Session.objects.create(project=project, creator=owner, remembered=False)
    post_message(secret, "Between us.", author=owner)
    answer = api(owner).post(url(secret.pk))
    assert (answer.status_code, answer.json()) == refused("New messages are not remembered here.")


def test_messages_before_memory_was_switched_off_are_summarised(api, editor, session, queued):
    Session.objects.update(remembered=False)
    post_message(Session.objects.get(), "Between us.", author=editor)
    assert api(editor).post(url(session.pk)).json()["queued"]


def test_viewers_and_strangers_get_404(api, viewer, stranger, session, queued):
    assert api(viewer).post(url(session.pk)).status_code == 404
    assert api(stranger).post(url(session.pk)).status_code == 404
    assert queued == []


def test_a_session_that_is_not_there_is_404(api, owner, project, queued):
    assert api(owner).post(url("0190163d-8694-739b-aea5-966c26f8ad91")).status_code == 404
    assert api(owner).get(url("0190163d-8694-739b-aea5-966c26f8ad91")).status_code == 405


def test_an_entry_that_is_written_while_the_progress_is_read_is_not_overlooked(
    session, monkeypatch
):
    entries_after = summary_requests._entries_after

    def read_and_write(*arguments):
        entries = list(entries_after(*arguments))
        summarise(session.pk, datetime.now(UTC), force=True)
        return entries

    monkeypatch.setattr(summary_requests, "_entries_after", read_and_write)
    assert summary_requests.summary_progress(session, 0).is_pending
    assert summary_requests.summary_progress(session, 0).entries
