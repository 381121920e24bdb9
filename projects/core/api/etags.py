"""Entity tags: conditional requests with If-Match and If-None-Match.

https://www.rfc-editor.org/rfc/rfc9110#name-conditional-requests
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.exceptions import ParseError
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from projects.core.errors import StaleVersionError

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description=(
        "The entity tag that you read, or the `version` of an object that has one. If the object "
        "was changed since, the response is 412 and nothing is changed."
    ),
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="The entity tag that you read. While it is current, the response is an empty 304.",
)


def entity_tag(data: Mapping[str, Any]) -> str:
    """Return the entity tag of a representation: its version if it has one, and a digest."""
    digest = hashlib.sha256(JSONRenderer().render(data)).hexdigest()[:16]
    return f'"{data["version"]}.{digest}"' if "version" in data else f'"{digest}"'


def etag_header(version: int) -> dict[str, str]:
    """Return the ETag header for an object whose representation is not part of the response."""
    return {"ETag": f'"{version}"'}


def if_match_version(request) -> int | None:
    """Return the version in If-Match, which is a number or an entity tag; None for any version.

    The digest in an entity tag is ignored: every change that a request could overwrite increases
    the version. Raises ParseError.
    """
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    match = re.fullmatch(r'(?:W/)?"(\d{1,9})(?:\.[0-9a-f]{16})?"|(\d{1,9})', header)
    if match is None:
        raise ParseError('If-Match must be the version that you read, such as "3".')
    return int(match[1] or match[2])


def is_any(request, header: str) -> bool:
    """Return whether `header` is `*`: If-Match requires an object, If-None-Match requires none."""
    return request.headers.get(header, "").strip() == "*"


def is_conditional(request) -> bool:
    """Return whether If-Match names a state. `*` only requires that the object exists."""
    return "If-Match" in request.headers and not is_any(request, "If-Match")


def check_if_match(request, data: Mapping[str, Any]) -> None:
    """Raise `StaleVersionError` unless If-Match names `data`. For objects without a version.

    `data` must be the current representation, and the caller must lock the object until the end of
    the transaction. Raises ParseError for an invalid tag.
    """
    if not is_conditional(request):
        return
    tags = parse_etags(request.headers["If-Match"])
    if not tags:
        raise ParseError("If-Match must be the entity tag that you read.")
    # Proxies that compress responses make tags weak.
    if entity_tag(data) not in {tag.removeprefix("W/") for tag in tags}:
        raise StaleVersionError


class ETagMixin:
    """Adds an ETag to the responses of a detail view; responds 304 if If-None-Match names it."""

    def represent_current(self, error: StaleVersionError) -> dict[str, Any]:
        """Return what the 412 response adds: the current object by its name, such as `message`."""
        return {}

    def handle_exception(self, exc: Exception) -> Response:
        response: Response = super().handle_exception(exc)  # type: ignore[misc]
        if isinstance(exc, StaleVersionError):
            for name, data in self.represent_current(exc).items():
                response.data[name], response["ETag"] = data, entity_tag(data)
        return response

    def finalize_response(self, request, response, *args, **kwargs):
        response = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]
        data = getattr(response, "data", None)
        if not (status.is_success(response.status_code) and isinstance(data, Mapping)):
            return response
        # The responses to DELETE (a receipt) and OPTIONS do not represent the object.
        if request.method in ("DELETE", "OPTIONS"):
            return response
        tag = response["ETag"] = entity_tag(data)
        if request.method in ("GET", "HEAD"):
            known = parse_etags(request.headers.get("If-None-Match", ""))
            if "*" in known or tag in {known_tag.removeprefix("W/") for known_tag in known}:
                unchanged = Response(status=status.HTTP_304_NOT_MODIFIED, headers={"ETag": tag})
                return super().finalize_response(request, unchanged, *args, **kwargs)  # type: ignore[misc]
        return response
