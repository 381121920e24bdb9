"""Lists come in pages: {"next", "previous", "results"}."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

Position = Callable[[str], object]


class NewestFirst(CursorPagination):
    """By primary key, which as a UUIDv7 sorts by the time it was made: no page is ever torn.

    A view's `orderings` are others that may be asked for, each with what a position in it is; the
    first is the usual one.
    """

    ordering: str | tuple[str, ...] = "-id"
    page_size_query_param = "page_size"
    max_page_size = 200
    # What a cursor's position must be, so that a mangled one answers 404.
    position: Position = UUID

    def get_page_size(self, request: Request) -> int:
        given = request.query_params.get(self.page_size_query_param, "1")
        if not (given.isascii() and given.isdigit() and int(given[:9])):
            raise ValidationError({self.page_size_query_param: ["A number from 1 to 200."]})
        size: int = super().get_page_size(request)
        return size

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        orderings: dict[str, Position] = getattr(view, "orderings", {})
        if not orderings:
            ordering: tuple[str, ...] = super().get_ordering(request, queryset, view)
            return ordering
        asked = request.query_params.get("ordering", next(iter(orderings)))
        if asked not in orderings:
            raise ValidationError({"ordering": [f"One of {', '.join(orderings)}."]})
        self.position = orderings[asked]
        # Of what is equal, each has its place.
        return (asked, "-id" if asked.startswith("-") else "id")

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        parameters = super().get_schema_operation_parameters(view)
        for one in parameters:
            if one["name"] == self.page_size_query_param:
                one["schema"] = {"type": "integer", "minimum": 1, "maximum": self.max_page_size}
        if orderings := getattr(view, "orderings", {}):
            usual = {"type": "string", "enum": [*orderings], "default": next(iter(orderings))}
            parameters.append(
                {
                    "name": "ordering",
                    "in": "query",
                    "required": False,
                    "description": "A hyphen: the last first.",
                    "schema": usual,
                }
            )
        return parameters

    def decode_cursor(self, request: Request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                self.position(cursor.position)
            except ValueError as error:
                raise NotFound(self.invalid_cursor_message) from error
        return cursor
