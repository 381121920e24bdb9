"""The OpenAPI schema: adds headers and error responses that follow from the features of a route.

Error responses are {"detail": …}, or {"field": […]} for invalid input.
"""

from typing import Any

from django.utils import translation
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction, OpenApiResponse
from rest_framework import status
from rest_framework.permissions import SAFE_METHODS

from projects.api.idempotency import ERROR_DESCRIPTIONS, IDEMPOTENCY_KEY_HEADER
from projects.core.api.etags import IF_MATCH, IF_NONE_MATCH, ETagMixin
from projects.rate_limits import RATE_LIMIT_DESCRIPTION

SchemaDict = dict[str, Any]

_TEXT = {"type": "string"}
COMPONENTS: SchemaDict = {
    "Detail": {
        "type": "object",
        "description": "The reason.",
        "properties": {"detail": _TEXT},
        "required": ["detail"],
        "example": {"detail": "Not found."},
    },
    "FieldErrors": {
        "type": "object",
        "description": (
            "The errors of each field or parameter, by its name. Errors that concern several "
            "fields are under `non_field_errors`."
        ),
        "additionalProperties": {"type": "array", "items": _TEXT, "minItems": 1},
        "example": {"name": ["This field is required."]},
    },
}
_DETAIL = {"$ref": "#/components/schemas/Detail"}
_INVALID = {"oneOf": [_DETAIL, {"$ref": "#/components/schemas/FieldErrors"}]}
_ETAG_HEADER = {"ETag": {"schema": {"type": "string"}, "description": "The version, for If-Match."}}
_RETRY_AFTER_HEADER = {
    "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds to wait."}
}

COMMON_ERRORS: dict[int, str] = {
    status.HTTP_401_UNAUTHORIZED: "The token is missing or invalid.",
    status.HTTP_403_FORBIDDEN: "The token's scopes or its user's role do not permit this.",
}
BODY_ERRORS: dict[int, str] = {
    status.HTTP_413_REQUEST_ENTITY_TOO_LARGE: "The request is larger than the limit.",
    status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: "The media type of the request is not supported.",
}
INVALID_INPUT = "The input is invalid."
PROJECT_ARCHIVED = "The project is archived."
# The beginnings of the paths to a project and what it contains.
PROJECT_PATHS = tuple(
    f"/api/v1/{path}" for path in ("projects/{slug}/", "sessions/{id}/", "messages/{id}/")
)
# The only write that an archived project always accepts.
DELETE_PROJECT = ("delete", "/api/v1/projects/{slug}/")
# For views that declare these responses explicitly.
CONFLICT_RESPONSE = {
    status.HTTP_409_CONFLICT: OpenApiResponse(_DETAIL, "Not possible in the current state.")
}
INVALID_INPUT_RESPONSE = {status.HTTP_400_BAD_REQUEST: OpenApiResponse(_INVALID, INVALID_INPUT)}


class TokenScheme(OpenApiAuthenticationExtension):
    """Describes the authentication by API token."""

    target_class = "projects.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class EnglishSchemaGenerator(SchemaGenerator):
    """Describes the API in English, even for a request with the parameter `lang`, because only the
    texts that it shares with pages are translated.
    """

    def get_schema(self, request=None, public=False) -> SchemaDict:
        with translation.override("en"):
            schema: SchemaDict = super().get_schema(request, public)
        return schema


class StrataAutoSchema(AutoSchema):
    """Adds parameters and responses for idempotency, entity tags and rate limits."""

    @property
    def is_idempotent(self) -> bool:
        return getattr(getattr(self.view, self.method.lower(), None), "is_idempotent", False)

    def get_override_parameters(self) -> list[Any]:
        parameters = [*super().get_override_parameters()]
        if self.is_idempotent:
            parameters.append(IDEMPOTENCY_KEY_HEADER)
        if isinstance(self.view, ETagMixin):
            parameters.append(IF_NONE_MATCH if self.method in SAFE_METHODS else IF_MATCH)
        return parameters

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        if self.is_idempotent:
            for code, description in ERROR_DESCRIPTIONS.items():
                responses.setdefault(code, error_response(int(code), description))
        if self.view.throttle_classes and self.get_auth():
            responses.setdefault("429", error_response(429, RATE_LIMIT_DESCRIPTION))
        return responses


def describe_errors(result: SchemaDict, generator: object, **_: object) -> SchemaDict:
    """Add to each operation the error responses that it can have.

    This is a hook of drf-spectacular (POSTPROCESSING_HOOKS). Responses that a view declares are
    kept.
    """
    result["components"]["schemas"] |= COMPONENTS
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            is_write = method.upper() not in SAFE_METHODS and (method, path) != DELETE_PROJECT
            if is_write and path.startswith(PROJECT_PATHS):
                operation["responses"].setdefault("409", error_response(409, PROJECT_ARCHIVED))
            _describe_operation(operation)
    return result


def _describe_operation(operation: SchemaDict) -> None:
    parameters = operation.get("parameters", [])
    names = {parameter["name"] for parameter in parameters}
    places = {parameter["in"] for parameter in parameters}
    responses = operation["responses"]
    errors = dict(COMMON_ERRORS)
    if "requestBody" in operation:
        errors |= BODY_ERRORS
    if "requestBody" in operation or places & {"query", "header"}:
        errors[status.HTTP_400_BAD_REQUEST] = INVALID_INPUT
    if "path" in places or "cursor" in names:
        errors[status.HTTP_404_NOT_FOUND] = "The object does not exist, or you may not see it."
    if "If-Match" in names:
        errors[status.HTTP_412_PRECONDITION_FAILED] = "The object was changed since you read it."
    if "If-None-Match" in names:
        responses["304"] = {"description": "It is unchanged.", "headers": _ETAG_HEADER}
        responses["200"].setdefault("headers", {}).update(_ETAG_HEADER)
    for code, description in errors.items():
        responses.setdefault(str(code), error_response(code, description))
    operation["responses"] = dict(sorted(responses.items()))


def error_response(code: int, description: str) -> SchemaDict:
    schema = _INVALID if code == status.HTTP_400_BAD_REQUEST else _DETAIL
    content = {"application/json": {"schema": schema}}
    response: SchemaDict = {"description": description, "content": content}
    if code == status.HTTP_429_TOO_MANY_REQUESTS:
        response["headers"] = _RETRY_AFTER_HEADER
    return response
