"""Entity tags: what a program read, and whether it is still so.

https://www.rfc-editor.org/rfc/rfc9110#name-conditional-requests
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description=(
        "The entity tag that was read; of what has a `version`, this alone will do. What was "
        "changed since then answers 412, and stays as it is."
    ),
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="The entity tag that was read. What is the same still answers 304, without a body.",
)


class Changed(APIException):
    """It is not what the request's If-Match names any more."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_detail = "It was changed in the meantime."


def tag(told: Mapping[str, Any]) -> str:
    """The entity tag of a representation: a digest, after its version where it has one."""
    digest = hashlib.sha256(JSONRenderer().render(told)).hexdigest()[:16]
    return f'"{told["version"]}.{digest}"' if "version" in told else f'"{digest}"'


def etag(version: int) -> dict[str, str]:
    """The headers that tell of a `version` of which nothing else is told."""
    return {"ETag": f'"{version}"'}


def asked_version(request) -> int | None:
    """The version that If-Match names, as a number or an entity tag; None when any will do.

    Nothing but the version is looked at: it rises with every change that a stale one would undo.
    Raises ParseError.
    """
    given = request.headers.get("If-Match", "*").strip()
    if given == "*":
        return None
    found = re.fullmatch(r'(?:W/)?"(\d{1,9})(?:\.[0-9a-f]{16})?"|(\d{1,9})', given)
    if found is None:
        raise ParseError('If-Match takes the version that was read, such as "3".')
    return int(found[1] or found[2])


def is_conditional(request) -> bool:
    """Whether If-Match asks for more than that there is something."""
    given: str = request.headers.get("If-Match", "*")
    return given.strip() != "*"


def refuse_changed(request, told: Mapping[str, Any]) -> None:
    """For what has no version: raises Changed unless If-Match names `told`, which is as it is
    now, and stays so until the end of the transaction. Raises ParseError for what is no tag.
    """
    if not is_conditional(request):
        return
    tags = parse_etags(request.headers["If-Match"])
    if not tags:
        raise ParseError("If-Match takes the entity tag that was read.")
    if tag(told) not in tags:
        raise Changed


class Tagged:
    """A view of one thing whose answers carry its entity tag, and which tells it to nobody who
    has it already.
    """

    def finalize_response(self, request, response, *args, **kwargs):
        answer = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]
        told = getattr(answer, "data", None)
        if not (status.is_success(answer.status_code) and isinstance(told, Mapping)):
            return answer
        # A receipt of what was forgotten is no representation of what is there.
        if request.method == "DELETE":
            return answer
        answer["ETag"] = tag(told)
        if request.method == "GET" and _is_known(request, answer["ETag"]):
            known = Response(status=status.HTTP_304_NOT_MODIFIED, headers={"ETag": answer["ETag"]})
            return super().finalize_response(request, known, *args, **kwargs)  # type: ignore[misc]
        return answer


def _is_known(request, there: str) -> bool:
    tags = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in tags or there in {one.removeprefix("W/") for one in tags}
