"""Cursor pagination: responses have {"next", "previous", "results"}."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

Position = Callable[[str], object]


class NewestFirstPagination(CursorPagination):
    """Sorts by primary key. UUIDv7 keys sort by creation time, so that pages never overlap.

    `orderings` of a view maps each value of `?ordering=` to the type of its cursor position. The
    first value is the default.
    """

    ordering: str | tuple[str, ...] = "-id"
    page_size_query_param = "page_size"
    max_page_size = 200
    # The type of a cursor position. An invalid position gets 404.
    position: Position = UUID

    def get_page_size(self, request: Request) -> int:
        value = request.query_params.get(self.page_size_query_param, "1")
        if not (value.isascii() and value.isdigit() and int(value[:9])):
            raise ValidationError({self.page_size_query_param: ["This must be from 1 to 200."]})
        return super().get_page_size(request)

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        orderings: dict[str, Position] = getattr(view, "orderings", {})
        if not orderings:
            return super().get_ordering(request, queryset, view)
        ordering = request.query_params.get("ordering", next(iter(orderings)))
        if ordering not in orderings:
            raise ValidationError({"ordering": [f"One of {', '.join(orderings)}."]})
        self.position = orderings[ordering]
        # Add the primary key, so that rows with equal values have a fixed order.
        return (ordering, "-id" if ordering.startswith("-") else "id")

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        parameters = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] = {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": self.max_page_size,
                }
        if orderings := getattr(view, "orderings", {}):
            schema = {"type": "string", "enum": [*orderings], "default": next(iter(orderings))}
            ordering = {"name": "ordering", "in": "query", "required": False, "schema": schema}
            parameters.append(ordering | {"description": "A hyphen before it reverses the order."})
        return parameters

    def decode_cursor(self, request: Request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                position = self.position(cursor.position)
            except ValueError as error:
                raise NotFound(self.invalid_cursor_message) from error
            # Times in cursors are in UTC. PostgreSQL does not accept all offsets.
            if isinstance(position, datetime) and position.utcoffset():
                raise NotFound(self.invalid_cursor_message)
        return cursor
