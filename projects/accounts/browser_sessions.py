"""Which browsers somebody is signed in with, and when each was last here."""

import time

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

# Seconds. No visit sooner than that after the last that was noted is written down.
NOTED_EVERY = 600
_NOTED_AT = "visit_noted_at"


class NotesVisits(MiddlewareMixin):
    """Writes down, now and then, from where a browser in which somebody is signed in asks."""

    def process_request(self, request: HttpRequest) -> None:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return
        session = request.session
        now = int(time.time())
        if SESSION_KEY not in session or session.get(_NOTED_AT, 0) > now - NOTED_EVERY:
            return
        if request.user.is_authenticated:
            session[_NOTED_AT] = now
            UserSession.objects.create_from_request(request)
            try:
                # Not after the answer, which may be a stream that should hold no connection.
                session.save()
            except UpdateError as error:
                raise SessionInterrupted("This browser was signed out just now.") from error
            session.modified = False


def clear() -> None:
    """Removes the sessions that are over, and what was noted of those that are no more."""
    SessionStore.clear_expired()
    there = Session.objects.filter(session_key=OuterRef("session_key"))
    UserSession.objects.filter(~Exists(there)).delete()
