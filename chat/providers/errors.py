"""Translates pydantic-ai's exceptions into `ProviderError`."""

from django.utils.translation import gettext_noop as _
from pydantic_ai import exceptions

from chat.providers.base import ProviderError


def to_provider_error(error: exceptions.AgentRunError | exceptions.UserError) -> ProviderError:
    """Return `error` in words for people. The provider's own text stays in the log."""
    wait = getattr(error, "retry_after", None)
    if isinstance(error, exceptions.ModelRateLimitError):
        suffix = f" Try again in {wait:.0f} seconds." if wait else ""
        message = _("The model's provider does not accept more requests now.")
        return ProviderError(message + suffix, wait, 429, "rate_limit_exceeded")
    for kind, message, status, code in _TRANSLATIONS:
        if isinstance(error, kind):
            return ProviderError(message, wait, status, code)
    return ProviderError(_("The model's answer could not be read."), wait)


# A wrong provider key is the server's fault, so it is a 500: a 401 would blame the client's token.
_TRANSLATIONS: tuple[tuple[type[Exception], str, int, str], ...] = (
    (
        exceptions.UserError,
        _("The model is not configured: its name or its key is missing."),
        *(500, "model_not_configured"),
    ),
    (
        exceptions.ModelQuotaExceededError,
        _("The account with the model's provider has no credit left."),
        *(429, "insufficient_quota"),
    ),
    (
        exceptions.ModelRequestTimeout,
        _("The model did not answer in time."),
        *(504, "timeout"),
    ),
    (exceptions.ModelTimeoutError, _("The model did not answer in time."), 504, "timeout"),
    (
        exceptions.ModelConnectionError,
        _("The connection to the model broke or could not be made."),
        *(502, "upstream_error"),
    ),
    (
        exceptions.ModelAuthenticationError,
        _("The model's provider refused the key."),
        *(500, "model_not_configured"),
    ),
    (
        exceptions.ModelNotFoundError,
        _("The model's provider does not know this model."),
        *(500, "model_not_configured"),
    ),
    (
        exceptions.ModelContextWindowExceededError,
        _("The prompt is longer than the model can read."),
        *(400, "context_length_exceeded"),
    ),
    (
        exceptions.ModelRequestRejectedError,
        _("The model's provider refused the request."),
        *(400, "request_refused"),
    ),
    (
        exceptions.ModelOverloadedError,
        _("The model's provider is overloaded."),
        *(503, "overloaded"),
    ),
    (
        exceptions.ModelUnavailableError,
        _("The model's provider is not available just now."),
        *(503, "unavailable"),
    ),
    (
        exceptions.ModelServerError,
        _("The model's provider failed with an error of its own."),
        *(502, "upstream_error"),
    ),
    (
        exceptions.ContentFilterError,
        _("The model's provider withheld the answer."),
        *(400, "content_filter"),
    ),
)
