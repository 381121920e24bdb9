"""The database's clock is set back: what was written before, and ends later than anything may,
holds nobody up.
"""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from chat.conversations.messages import begin_reply, post_message
from chat.models import Message, Session
from chat.streaming import live_replies
from memory import leases
from memory.layers import cycle
from memory.models import Cursor

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(project, owner):
    chat_session = Session.objects.create(project=project, creator=owner)
    post_message(chat_session, "The cutover is on 3 March.", author=owner)
    return chat_session


def set_back(hours: int) -> None:
    """As if this had been the time of all that was written so far."""
    ahead = timedelta(hours=hours)
    Cursor.objects.update(
        lease_until=F("lease_until") + ahead, next_try_at=F("next_try_at") + ahead
    )
    Message.objects.update(heartbeat_at=F("heartbeat_at") + ahead)


@pytest.mark.parametrize(("hours", "is_free"), [(0, False), (2, True)])
def test_a_lease_from_the_future_is_nobodys(session, hours, is_free):
    assert leases.claim(Cursor.objects.all(), session.pk)
    set_back(hours)
    assert (leases.claim(Cursor.objects.all(), session.pk) is not None) == is_free


def test_a_wait_into_the_far_future_is_over(session):
    leases.claim(Cursor.objects.all(), session.pk).fail("It did not work.")
    assert not Cursor.objects.ready().exists()
    set_back(24)
    assert Cursor.objects.ready().exists()


@pytest.mark.parametrize(("hours", "is_due"), [(0, False), (2, True)])
def test_messages_dated_in_the_future_are_idle(session, hours, is_due):
    ahead = timedelta(hours=hours)
    Session.objects.update(last_activity_at=F("last_activity_at") + ahead)
    assert cycle.due(timezone.now()).sessions == [session.pk] * is_due


@pytest.mark.parametrize(("hours", "ended"), [(0, 0), (2, 1)])
def test_a_reply_that_was_spoken_in_the_future_is_over(session, owner, hours, ended):
    begin_reply(post_message(session, "When?", author=owner))
    set_back(hours)
    assert live_replies.sweep_interrupted() == ended
