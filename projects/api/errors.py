"""How the schema tells of what goes wrong: {"detail": …}, or {"field": […]} for what was sent."""

from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import status

Described = dict[str, Any]

_TEXT = {"type": "string"}
SCHEMAS: Described = {
    "Detail": {
        "type": "object",
        "description": "Why not.",
        "properties": {"detail": _TEXT},
        "required": ["detail"],
        "example": {"detail": "Not found."},
    },
    "FieldErrors": {
        "type": "object",
        "description": (
            "What is wrong with each field or parameter, by its name; with all of them together "
            "under `non_field_errors`."
        ),
        "additionalProperties": {"type": "array", "items": _TEXT, "minItems": 1},
        "example": {"name": ["This field is required."]},
    },
}
_DETAIL = {"$ref": "#/components/schemas/Detail"}
_WRONG = {"oneOf": [_DETAIL, {"$ref": "#/components/schemas/FieldErrors"}]}
_TAG = {"ETag": {"schema": {"type": "string"}, "description": "What was read, for If-Match."}}
_WAIT = {
    "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds to wait."}
}

EVERYWHERE: dict[int, str] = {
    status.HTTP_401_UNAUTHORIZED: "There is no token, or none that is valid.",
    status.HTTP_403_FORBIDDEN: "The token's scopes, or the role of its user, do not allow this.",
}
WITH_A_BODY: dict[int, str] = {
    status.HTTP_413_REQUEST_ENTITY_TOO_LARGE: "The request is larger than is taken at once.",
    status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: "The request is of another media type.",
}
# For views that declare it themselves: something cannot be done as things are.
CONFLICT = {
    status.HTTP_409_CONFLICT: OpenApiResponse(_DETAIL, "It makes no sense as things are now.")
}
NOT_READ = "What was sent makes no sense here."
NOT_AS_SENT = {status.HTTP_400_BAD_REQUEST: OpenApiResponse(_WRONG, NOT_READ)}
NOT_THERE = "There is none, or not for you: the two cannot be told apart."


def describe_errors(result: Described, generator: object, **_: object) -> Described:
    """Adds to each operation of the schema the errors that it can answer with.

    A hook of drf-spectacular: POSTPROCESSING_HOOKS. What a view declares itself stays.
    """
    result["components"]["schemas"] |= SCHEMAS
    for methods in result["paths"].values():
        for operation in methods.values():
            _describe(operation)
    return result


def _describe(operation: Described) -> None:
    parameters = operation.get("parameters", [])
    has_body = "requestBody" in operation
    reasons = dict(EVERYWHERE)
    if has_body:
        reasons |= WITH_A_BODY
    if has_body or any(one["in"] in ("query", "header") for one in parameters):
        reasons[status.HTTP_400_BAD_REQUEST] = NOT_READ
    if any(one["in"] == "path" or one["name"] == "cursor" for one in parameters):
        reasons[status.HTTP_404_NOT_FOUND] = NOT_THERE
    if any(one["name"] == "If-Match" for one in parameters):
        reasons[status.HTTP_412_PRECONDITION_FAILED] = "It was changed since it was read."
    responses = operation["responses"]
    if any(one["name"] == "If-None-Match" for one in parameters):
        responses["304"] = {"description": "It is the same still.", "headers": _TAG}
        responses["200"].setdefault("headers", {}).update(_TAG)
    for code, reason in reasons.items():
        responses.setdefault(str(code), response(code, reason))
    operation["responses"] = dict(sorted(responses.items()))


def response(code: int, reason: str) -> Described:
    schema = _WRONG if code == status.HTTP_400_BAD_REQUEST else _DETAIL
    told: Described = {"description": reason, "content": {"application/json": {"schema": schema}}}
    if code == status.HTTP_429_TOO_MANY_REQUESTS:
        told["headers"] = _WAIT
    return told
