"""The error hierarchy. Domain code raises these errors. Each entry point converts them in one
place: `projects.core.api.exception_handler` (REST), `config.http.error_pages` (pages),
`chat.openai_api.errors` (OpenAI) and `memory.api.mcp.server` (MCP).
"""

from typing import ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

StrOrPromise = str | Promise

# Stored before a colon and the type of an unexpected error.
INTERNAL_FAILURE = gettext_noop("Strata itself failed")


class DomainError(Exception):
    """An operation was rejected, or failed for a reason that the user can understand. `str(error)`
    is a sentence for users, in their language if it is translated.

    `code` is for programs and never changes. `field` is the name of the invalid input, or empty.
    `retry_after_s` is the number of seconds after which the same request may succeed.
    """

    status: ClassVar[int] = 400
    default_code: ClassVar[str] = "error"
    default_message: ClassVar[StrOrPromise] = _("This is not possible.")
    retry_after_s: int | None = None

    def __init__(self, message: StrOrPromise = "", *, code: str = "", field: str = "") -> None:
        self.message = message or self.default_message
        super().__init__(self.message)
        self.code = code or self.default_code
        self.field = field

    @property
    def headers(self) -> dict[str, str]:
        """Return the HTTP headers that belong to the error."""
        return {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}

    def __str__(self) -> str:
        return str(self.message)


class InvalidInputError(DomainError):
    """The input is malformed, too long or inconsistent."""

    status = 400
    default_code = "invalid"
    default_message: ClassVar[StrOrPromise] = _("This input is not valid.")


class NotAllowedError(DomainError):
    """The user may see the object, but may not do this with it."""

    status = 403
    default_code = "not_allowed"
    default_message: ClassVar[StrOrPromise] = _("You do not have permission to do this.")


class NotFoundError(DomainError):
    """The object does not exist, or the user may not see it."""

    status = 404
    default_code = "not_found"
    default_message: ClassVar[StrOrPromise] = _("Not found.")


class ConflictError(DomainError):
    """The operation is not possible in the current state of the object."""

    status = 409
    default_code = "conflict"
    default_message: ClassVar[StrOrPromise] = _("This is not possible right now.")


class StaleVersionError(ConflictError):
    """The object has changed since the caller read it."""

    status = 412
    default_code = "stale_version"
    default_message: ClassVar[StrOrPromise] = _(
        "This has changed in the meantime. Reload and try again."
    )


class LimitError(DomainError):
    """The input or result exceeds a limit, or there are too many requests."""

    status = 413
    default_code = "limit_exceeded"
    default_message: ClassVar[StrOrPromise] = _("This is too large.")


class UnavailableError(DomainError):
    """A service that the operation needs, such as a model or a server, does not respond."""

    status = 503
    default_code = "unavailable"
    default_message: ClassVar[StrOrPromise] = _("This is not available right now. Try again later.")
