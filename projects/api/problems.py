"""What goes wrong is told as {"detail": …} or {"field": […]}, however deep it lies."""

from collections.abc import Iterator
from typing import Any

from rest_framework import status
from rest_framework.response import Response
from rest_framework.views import exception_handler


def handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """As REST framework's; what is wrong inside of a field is told of the field."""
    answer: Response | None = exception_handler(exc, context)
    if answer is not None and answer.status_code == status.HTTP_400_BAD_REQUEST:
        answer.data = flat(answer.data)
    return answer


def flat(told: Any) -> dict[str, Any]:
    """`told` with a list of texts for each field: `{"ids": {1: ["No id."]}}` becomes
    `{"ids": ["1: No id."]}`.
    """
    if not isinstance(told, dict):
        return {"non_field_errors": list(_texts(told))}
    if isinstance(told.get("detail"), str):
        return told
    return {field: list(_texts(reasons)) for field, reasons in told.items()}


def _texts(reasons: Any) -> Iterator[str]:
    if isinstance(reasons, dict):
        for place, inner in reasons.items():
            yield from (f"{place}: {text}" for text in _texts(inner))
    elif isinstance(reasons, list):
        for one in reasons:
            yield from _texts(one)
    else:
        yield str(reasons)
