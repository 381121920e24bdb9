"""Translates pydantic-ai's exceptions into `ProviderError`."""

import math
import re

from django.utils.translation import gettext_noop as _
from pydantic_ai import exceptions

from chat.providers.base import ProviderError

BLOCKED = _("The provider blocked the reply.")
MAX_BODY_CHARS = 2_000
# What providers write in rejections that pydantic-ai does not recognise: Google, Groq, llama.cpp,
# LM Studio, TGI, xAI, Together, Cohere, Azure, Mistral and OpenRouter.
_WORDS: tuple[tuple[type[Exception], re.Pattern[str]], ...] = (
    (
        exceptions.ModelContextWindowExceededError,
        re.compile(
            "context (?:size|length|window)|exceed_context_size|context the overflows"
            "|prompt is too long|maximum prompt length|too many tokens|input token count"
            "|`inputs`|request too large|too large to process",
            re.IGNORECASE,
        ),
    ),
    (exceptions.ModelAuthenticationError, re.compile("API key not valid|API_KEY_INVALID")),
    (exceptions.ContentFilterError, re.compile("content_filter|content management policy")),
    (exceptions.ModelNotFoundError, re.compile("invalid_model|not a valid model")),
)
_REJECTED_STATUSES = (400, 413, 422, 500)


def kind_of(error: Exception) -> type[Exception]:
    """Return the class of `error`, or the class that its text belongs to."""
    if not isinstance(error, exceptions.ModelHTTPError):
        return type(error)
    if error.status_code not in _REJECTED_STATUSES:
        return type(error)
    text = str(error.body)[:MAX_BODY_CHARS]
    return next((kind for kind, words in _WORDS if words.search(text)), type(error))


def to_provider_error(error: exceptions.AgentRunError | exceptions.UserError) -> ProviderError:
    """Return an error with a message for users. The provider's own message is only logged."""
    wait = getattr(error, "retry_after", None)
    if isinstance(error, exceptions.ModelRateLimitError):
        message = _("Your provider is limiting requests. Try again in a few minutes.")
        if wait:
            message = _("Your provider is limiting requests. Try again in %s s.") % math.ceil(wait)
        return ProviderError(message, wait, 429, "rate_limit_exceeded")
    found = kind_of(error)
    for kind, message, status, code in _TRANSLATIONS:
        if issubclass(found, kind):
            # The provider has removed this model.
            is_gone = issubclass(found, exceptions.ModelNotFoundError)
            return ProviderError(message, wait, status, code, is_outage=is_gone)
    return ProviderError(_("The provider sent a response that Strata could not read."), wait)


# A wrong provider key becomes status 500, because 401 would mean that the client's token is wrong.
_TRANSLATIONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, int, str], ...] = (
    (
        exceptions.UserError,
        _(
            "The model is not set up: its name or API key is missing. A server administrator can "
            "add the key on the Models page."
        ),
        *(500, "model_not_configured"),
    ),
    (
        exceptions.ModelQuotaExceededError,
        _(
            "Your provider account is out of credit. Add credit at the provider, or choose another "
            "model."
        ),
        *(429, "insufficient_quota"),
    ),
    (
        (exceptions.ModelRequestTimeout, exceptions.ModelTimeoutError),
        _("The model did not answer in time. Try again."),
        *(504, "timeout"),
    ),
    (
        exceptions.ModelConnectionError,
        _("The connection to the model failed. Check that its server is running, and try again."),
        *(502, "upstream_error"),
    ),
    (
        exceptions.ModelAuthenticationError,
        _(
            "The provider rejected the API key. A server administrator can enter it again on the "
            "Models page."
        ),
        *(500, "model_not_configured"),
    ),
    (
        exceptions.ModelNotFoundError,
        _("The provider has no model with this name. Choose another model."),
        *(500, "model_not_configured"),
    ),
    (
        exceptions.ModelContextWindowExceededError,
        _("The prompt is too long for this model."),
        *(400, "context_length_exceeded"),
    ),
    (
        exceptions.ModelRequestRejectedError,
        _("The provider rejected the request."),
        *(400, "request_refused"),
    ),
    (
        exceptions.ModelOverloadedError,
        _("The provider is overloaded. Try again in a few minutes."),
        *(503, "overloaded"),
    ),
    (
        exceptions.ModelUnavailableError,
        _("The provider is unavailable. Try again later."),
        *(503, "unavailable"),
    ),
    (
        exceptions.ModelServerError,
        _("The provider returned an error. Try again."),
        *(502, "upstream_error"),
    ),
    (exceptions.ContentFilterError, BLOCKED, *(400, "content_filter")),
)
