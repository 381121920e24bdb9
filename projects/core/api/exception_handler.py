"""Error responses of the REST API: {"detail": …} or {"field": […]}, even for nested errors."""

import logging
from collections.abc import Iterator
from typing import Any

from django.http import Http404
from rest_framework import status
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from projects.core.database import is_deleted_meanwhile
from projects.core.errors import DomainError, NotFoundError

log = logging.getLogger(__name__)


def handle_exception(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response to `exc`; None for unexpected exceptions, which are errors of Strata."""
    if is_deleted_meanwhile(exc):
        log.warning("row_deleted_meanwhile", exc_info=exc)
        exc = NotFoundError()
    # The message of `get_object_or_404` names a class.
    if isinstance(exc, Http404):
        exc = NotFoundError()
    if isinstance(exc, DomainError):
        set_rollback()
        body = {exc.field: [str(exc)]} if exc.field else {"detail": str(exc)}
        return Response(body, status=exc.status, headers=exc.headers)
    response: Response | None = exception_handler(exc, context)
    if response is not None and response.status_code == status.HTTP_400_BAD_REQUEST:
        response.data = flatten_errors(response.data)
    return response


def flatten_errors(errors: Any) -> dict[str, Any]:
    """Return `errors` with a flat list of strings for each field.

    `{"ids": {1: ["No id."]}}` becomes `{"ids": ["1: No id."]}`.
    """
    if not isinstance(errors, dict):
        return {"non_field_errors": list(_texts(errors))}
    if isinstance(errors.get("detail"), str):
        return errors
    return {field: list(_texts(reasons)) for field, reasons in errors.items()}


def _texts(reasons: Any) -> Iterator[str]:
    if isinstance(reasons, dict):
        for key, nested in reasons.items():
            yield from (f"{key}: {text}" for text in _texts(nested))
    elif isinstance(reasons, list):
        for reason in reasons:
            yield from _texts(reason)
    else:
        yield str(reasons)
