"""Browser sessions: which views need one, and the time of the last visit of each."""

import time
from urllib.parse import urlsplit

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

# The minimum interval, in seconds, between two recorded visits of a browser.
VISIT_INTERVAL_S = 600
_VISITED_AT = "visit_noted_at"


class BrowserSessionMiddleware(MiddlewareMixin):
    """Records visits and IP addresses of browsers, at most once per VISIT_INTERVAL_S."""

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
                # Save before the response, because a stream must not hold a database connection.
                session.save()
            except UpdateError as error:
                raise SessionInterrupted(
                    "This browser was signed out during the request."
                ) from error
            session.modified = False


class PageLoginMiddleware(LoginRequiredMiddleware):
    """Redirects to the sign-in page, except from views that are marked with `login_not_required`.

    The mark is checked first, because requests of programs should not load a browser session.
    """

    def process_view(self, request, view_func, view_args, view_kwargs):
        if getattr(view_func, "login_required", True):
            return super().process_view(request, view_func, view_args, view_kwargs)
        return None

    def handle_no_permission(self, request, view_func):
        if request.method in ("GET", "HEAD"):
            return super().handle_no_permission(request, view_func)
        # After the sign-in, return to the page with the form: the address of a POST shows nothing.
        try:
            page = urlsplit(request.headers.get("Referer", ""))
        except ValueError:
            page = urlsplit("")
        path = f"{page.path}?{page.query}" if page.query else page.path
        is_ours = page.netloc == urlsplit(request.build_absolute_uri()).netloc
        return redirect_to_login(path if is_ours else "/", self.get_login_url(view_func))


def delete_expired() -> None:
    """Delete expired sessions, and the recorded visits of sessions that no longer exist."""
    SessionStore.clear_expired()
    session = Session.objects.filter(session_key=OuterRef("session_key"))
    UserSession.objects.filter(~Exists(session)).delete()
