"""Errors as OpenAI tells them: {"error": {"message", "type", "param", "code"}}.

https://platform.openai.com/docs/guides/error-codes
"""

from typing import Any

from rest_framework import exceptions, status
from rest_framework.response import Response

from chat.providers import ProviderError


class Refused(exceptions.APIException):
    """A request that is not carried out: what is wrong, in which parameter, and OpenAI's word."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        code: str | None = "invalid_value",
        status_code: int = status.HTTP_400_BAD_REQUEST,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.param, self.code = message, param, code
        self.status_code = status_code
        # As REST framework names the seconds that it puts into the header.
        self.wait = retry_after

    @property
    def body(self) -> dict[str, Any]:
        return told(self.message, self.status_code, self.param, self.code)


def unknown_model(name: str) -> Refused:
    message = f"The model `{name}` does not exist or you do not have access to it."
    return Refused(message, "model", "model_not_found", status.HTTP_404_NOT_FOUND)


def failed(error: ProviderError) -> Refused:
    """What became of the model that was to answer."""
    return Refused(error.reason, None, error.code, error.status, error.retry_after)


def told(
    message: str, code: int, param: str | None = None, word: str | None = None
) -> dict[str, Any]:
    """The body of an answer with the status `code`."""
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(
        code, "server_error" if code >= 500 else "invalid_request_error"
    )
    return {"error": {"message": message, "type": kind, "param": param, "code": word}}


# What REST framework raises by itself, in OpenAI's words.
_WORDS: dict[int, str] = {
    401: "invalid_api_key",
    403: "insufficient_permissions",
    404: "not_found",
    405: "method_not_supported",
    413: "request_too_large",
    415: "unsupported_media_type",
    429: "rate_limit_exceeded",
}


def reshaped(error: Exception, response: Response) -> Response:
    """The answer that REST framework makes of `error`, its body in OpenAI's shape."""
    if isinstance(error, Refused):
        response.data = error.body
        return response
    data = response.data
    detail = data.get("detail", data) if isinstance(data, dict) else data
    word = _WORDS.get(response.status_code)
    response.data = told(str(detail), response.status_code, None, word)
    return response
