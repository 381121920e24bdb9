"""Lists come in pages: {"next", "previous", "results"}."""

from collections.abc import Callable
from uuid import UUID

from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    """By primary key, which as a UUIDv7 sorts by the time it was made: no page is ever torn."""

    ordering: str | tuple[str, ...] = "-id"
    page_size_query_param = "page_size"
    max_page_size = 200
    # What a cursor's position must be, so that a mangled one answers 404.
    position: Callable[[str], object] = UUID

    def decode_cursor(self, request: Request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                self.position(cursor.position)
            except ValueError as error:
                raise NotFound(self.invalid_cursor_message) from error
        return cursor
