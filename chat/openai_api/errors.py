"""Error responses in OpenAI's format: {"error": {"message", "type", "param", "code"}}.

https://platform.openai.com/docs/guides/error-codes
"""

from typing import Any

from rest_framework.response import Response

from projects.core.errors import DomainError, InvalidInputError

ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# OpenAI's error code for each HTTP status.
CODES = {
    401: "invalid_api_key",
    403: "insufficient_permissions",
    404: "not_found",
    405: "method_not_supported",
    413: "request_too_large",
    415: "unsupported_media_type",
    429: "rate_limit_exceeded",
}


def error_body(
    message: str, status: int, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return the body of an error response with the HTTP `status`."""
    default = "server_error" if status >= 500 else "invalid_request_error"
    error_type = ERROR_TYPES.get(status, default)
    return {"error": {"message": message, "type": error_type, "param": param, "code": code}}


def domain_error_body(error: DomainError) -> dict[str, Any]:
    """Return the response body for `error`. Its `field` becomes `param`."""
    is_default = error.code == InvalidInputError.default_code
    code = "invalid_value" if is_default else error.code
    return error_body(str(error), error.status, error.field or None, code)


def to_openai_response(error: Exception, response: Response) -> Response:
    """Return the REST `response` to `error` with a body in OpenAI's format."""
    if isinstance(error, DomainError):
        response.data = domain_error_body(error)
        return response
    data = response.data
    detail = data.get("detail", data) if isinstance(data, dict) else data
    code = CODES.get(response.status_code)
    response.data = error_body(str(detail), response.status_code, code=code)
    return response
