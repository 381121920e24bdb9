"""Conversations that end by themselves."""

from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now

from chat.models import Session, SessionStatus
from chat.sessions import update_session

# One sweep closes at most so many; the next goes on.
AT_ONCE = 500


def close_the_silent() -> int:
    """Closes the chats without activity for CLOSE_AFTER_DAYS; returns how many.

    Closing makes what is left of them due at once.
    """
    silence = timedelta(days=settings.CLOSE_AFTER_DAYS)
    silent = Session.objects.chats().filter(
        status=SessionStatus.ACTIVE, last_activity_at__lt=Now() - silence
    )
    found = list(silent.order_by("last_activity_at")[:AT_ONCE])
    for session in found:
        update_session(session, status=SessionStatus.CLOSED)
    return len(found)
