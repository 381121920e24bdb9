"""Protection of private sessions in the admin: lists hide text, and access is recorded."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from chat.models import Session, Visibility
from chat.signals import private_text_opened
from projects.admin import BaseAdmin
from projects.core.text import parse_uuid

HIDDEN_TEXT = _("(private)")


def is_private(session: Session | None) -> bool:
    return session is not None and session.visibility == Visibility.PRIVATE


class PrivateTextAdmin(BaseAdmin):
    """Base class of admin pages for rows with text of a session.

    `session_path` is the lookup path from the row to its session; it is empty for sessions
    themselves.
    """

    session_path = "session"

    def get_session(self, row: Any) -> Session | None:
        for name in filter(None, self.session_path.split("__")):
            row = getattr(row, name, None)
        return row

    def preview(self, row: Any, text: str) -> str:
        """Return the beginning of `text` for a list, or HIDDEN_TEXT if the session is private."""
        if is_private(self.get_session(row)):
            return str(HIDDEN_TEXT)
        return Truncator(text).chars(60) or "—"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # A search by words excludes private sessions: it could be used to guess their hidden text.
        if search_term and not parse_uuid(search_term.strip()):
            path = f"{self.session_path}__visibility".removeprefix("__")
            queryset = queryset.exclude(**{path: Visibility.PRIVATE})
        return super().get_search_results(request, queryset, search_term)

    def row_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        self.record_access(request, row)
        return super().row_context(request, row)

    def record_access(self, request: HttpRequest, row: Any) -> None:
        """Record that the user sees the text of `row`, if its session is private."""
        session = self.get_session(row)
        if is_private(session):
            private_text_opened.send(sender=Session, session=session, by=request.user)
