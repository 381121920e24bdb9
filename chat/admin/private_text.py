"""Words of private sessions in the admin: lists do not tell them, and whoever opens one leaves a
trace.
"""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.text import Truncator

from chat.models import Session, Visibility
from chat.signals import private_text_opened

VEIL = "(private)"


def is_private(session: Session | None) -> bool:
    return session is not None and session.visibility == Visibility.PRIVATE


class Veiled(admin.ModelAdmin):
    """For rows that hold words of a session. `of_session` is the path of fields that leads to it;
    empty for the session itself.
    """

    of_session = "session"

    def session_of(self, row: Any) -> Session | None:
        for name in filter(None, self.of_session.split("__")):
            row = getattr(row, name, None)
        return row

    def told(self, row: Any, text: str) -> str:
        """The beginning of `text` for a list; of a private session, that it is private."""
        if is_private(self.session_of(row)):
            return VEIL
        return Truncator(text).chars(60) or "—"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # What is not shown is not to be guessed by searching for it: by its id it is found.
        if search_term and not is_id(search_term):
            path = f"{self.of_session}__visibility".removeprefix("__")
            queryset = queryset.exclude(**{path: Visibility.PRIVATE})
        return super().get_search_results(request, queryset, search_term)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if kwargs.get("obj") is not None:
            self.leave_trace(request, kwargs["obj"])
        return super().render_change_form(request, context, *args, **kwargs)

    def leave_trace(self, request: HttpRequest, row: Any) -> None:
        """Puts on the record that whoever asks is shown the words of `row`, if they are private."""
        session = self.session_of(row)
        if is_private(session):
            private_text_opened.send(sender=Session, session=session, by=request.user)


def is_id(text: str) -> bool:
    try:
        UUID(text.strip())
    except ValueError:
        return False
    return True
