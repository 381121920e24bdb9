from datetime import UTC, datetime, timedelta

import pytest

from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import close_idle_sessions, update_session
from chat.models import Session, SessionStatus
from chat.signals import session_closed
from memory.layers import cycle
from projects.services import create_project, set_archived

pytestmark = pytest.mark.django_db


def session_of(project, owner, days: int) -> Session:
    at = datetime.now(UTC) - timedelta(days=days)
    session = Session.objects.create(
        project=project, creator=owner, created_at=at, last_activity_at=at
    )
    post_messages(session, [draft("The cutover is on 3 March.", created_at=at)])
    return session


def test_a_chat_without_activity_closes_by_itself(project, owner):
    silent, fresh = session_of(project, owner, 31), session_of(project, owner, 29)
    assert close_idle_sessions() == 1
    silent.refresh_from_db()
    fresh.refresh_from_db()
    assert (silent.status, fresh.status) == (SessionStatus.CLOSED, SessionStatus.ACTIVE)
    assert silent.version == 2
    assert close_idle_sessions() == 0


def test_a_chat_that_is_opened_again_stays_open(project, owner):
    session = session_of(project, owner, 31)
    close_idle_sessions()
    session.refresh_from_db()
    update_session(session, status=SessionStatus.ACTIVE)
    assert close_idle_sessions() == 0
    assert datetime.now(UTC) - session.last_activity_at < timedelta(days=1)


def test_how_long_is_a_setting(project, owner, settings):
    settings.CLOSE_AFTER_DAYS = 3
    session_of(project, owner, 4)
    assert close_idle_sessions() == 1


def test_a_project_has_a_time_of_its_own(project, owner, settings):
    other = create_project(owner, name="Ferry", close_after_hours=5)
    hours_ago = datetime.now(UTC) - timedelta(hours=6)
    sessions = {
        name: Session.objects.create(project=row, creator=owner, last_activity_at=hours_ago)
        for name, row in (("usual", project), ("ferry", other))
    }
    assert close_idle_sessions() == 1
    for session in sessions.values():
        session.refresh_from_db()
    assert sessions["ferry"].status == SessionStatus.CLOSED
    assert sessions["usual"].status == SessionStatus.ACTIVE
    # Longer than the server's time, too.
    settings.CLOSE_AFTER_DAYS = 1
    project.close_after_hours = 24 * 60
    project.save()
    session_of(project, owner, 31)
    assert close_idle_sessions() == 0


def test_chats_of_an_archived_project_stay_as_they_are(project, owner):
    session_of(project, owner, 31)
    set_archived(project, True)
    assert close_idle_sessions() == 0


def test_the_rest_of_a_closed_chat_is_due_at_once(project, owner):
    project.idle_minutes = 10_080
    project.save()
    session = session_of(project, owner, 0)
    assert cycle.due(datetime.now(UTC)).sessions == []
    session.status = SessionStatus.CLOSED
    session.save()
    assert cycle.due(datetime.now(UTC)).sessions == [session.pk]


def test_a_chat_that_cannot_be_closed_does_not_stop_the_others(project, owner):
    sessions = [session_of(project, owner, 33), session_of(project, owner, 32)]

    def fail(session, **kwargs) -> None:
        if session.pk == sessions[0].pk:
            raise ValueError

    session_closed.connect(fail)
    try:
        assert close_idle_sessions() == 1
    finally:
        session_closed.disconnect(fail)
    statuses = [Session.objects.get(pk=session.pk).status for session in sessions]
    assert statuses == [SessionStatus.ACTIVE, SessionStatus.CLOSED]


def test_a_chat_that_is_used_while_others_are_closed_stays_open(project, owner):
    sessions = [session_of(project, owner, 33), session_of(project, owner, 32)]

    def use_the_other(session, **kwargs) -> None:
        [other] = [row for row in sessions if row.pk != session.pk]
        post_messages(other, [draft("Does the replica stay?")])

    session_closed.connect(use_the_other)
    try:
        assert close_idle_sessions() == 1
    finally:
        session_closed.disconnect(use_the_other)
    statuses = [Session.objects.get(pk=session.pk).status for session in sessions]
    assert statuses == [SessionStatus.CLOSED, SessionStatus.ACTIVE]
