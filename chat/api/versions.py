"""Versions in headers: what a program read, and what there is now."""

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ParseError

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The version that was read. What was changed since then answers 412.",
)


def asked_version(request) -> int | None:
    """The version that If-Match names, as a number or an entity tag; None when any will do.

    Raises ParseError.
    """
    given = request.headers.get("If-Match", "*").strip()
    if given == "*":
        return None
    found = re.fullmatch(r'(?:W/)?"(\d{1,9})"|(\d{1,9})', given)
    if found is None:
        raise ParseError('If-Match takes the version that was read, such as "3".')
    return int(found[1] or found[2])


def etag(version: int) -> dict[str, str]:
    """The headers that tell of `version`."""
    return {"ETag": f'"{version}"'}
