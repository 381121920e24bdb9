"""Browser sessions: the list of signed-in browsers, with the time of their last visit."""

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

# Within this time after a recorded visit, further visits are not recorded.
VISIT_INTERVAL_S = 600
_VISITED_AT = "visit_noted_at"


class BrowserSessionMiddleware(MiddlewareMixin):
    """Records from time to time the address from which a signed-in browser sends requests."""

    def process_request(self, request: HttpRequest) -> None:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return
        session = request.session
        now = int(time.time())
        if SESSION_KEY not in session or session.get(_VISITED_AT, 0) > now - VISIT_INTERVAL_S:
            return
        if request.user.is_authenticated:
            session[_VISITED_AT] = now
            UserSession.objects.create_from_request(request)
            try:
                # Before the response, which may be a stream that must not hold a connection.
                session.save()
            except UpdateError as error:
                raise SessionInterrupted("This browser was signed out just now.") from error
            session.modified = False


def delete_expired() -> None:
    """Delete expired sessions, and the visits of sessions that no longer exist."""
    SessionStore.clear_expired()
    session = Session.objects.filter(session_key=OuterRef("session_key"))
    UserSession.objects.filter(~Exists(session)).delete()
