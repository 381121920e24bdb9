"""Limits the size of request bodies before a body is stored.

Django writes a complete body to a temporary file before it calls a view. Therefore the limit is
enforced in ASGI.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError
from django.utils import translation
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from config.http.error_pages import domain_error, page_language, too_large_message
from projects.core.database import in_thread
from projects.core.errors import (
    DomainError,
    InvalidInputError,
    LimitError,
    NotAllowedError,
    UnavailableError,
)
from projects.core.outages import as_outage

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = Callable[[Scope, Receive, Send, DomainError], Awaitable[None]]

# The paths of forms with files that may be larger than DATA_UPLOAD_MAX_MEMORY_SIZE together: files,
# imports, and messages with images.
UPLOAD_PATHS = re.compile(
    r"(/api/v1)?/projects/[^/]+/(files|imports)/|/projects/[^/]+/chats/([^/]+/messages/)?"
)
# The maximum number of such forms that a process receives and handles at the same time. Each takes
# its size twice in temporary files, for the body and for the files in it.
MAX_LARGE_FORMS = 4
# The maximum size of a body without a valid session or token. Slow senders could fill the memory
# and the folder of temporary files with larger ones.
MAX_STRANGER_BYTES = 1_000_000


class TooManyUploadsError(UnavailableError):
    """This process already receives the maximum number of large forms."""

    default_message = _("Too many files are being uploaded. Try again in a minute.")
    retry_after_s = 30


class NotSignedInError(NotAllowedError):
    """A body of more than MAX_STRANGER_BYTES has no valid session cookie or token."""

    status = 401
    default_code = "not_authenticated"
    default_message = _("You are not signed in. Sign in, or send a valid token.")


class CompressedBodyError(InvalidInputError):
    """The body of a request is compressed."""

    status = 415
    default_code = "unsupported_media_type"
    default_message = _("Compressed requests are not supported.")


class BodyLimitMiddleware:
    """ASGI middleware that calls `refuse` if the body is compressed or larger than the route
    accepts, if it has more than MAX_STRANGER_BYTES and is not from a user, or if the process
    already receives MAX_LARGE_FORMS large forms.

    If Content-Length is too large, the request is refused at once. A body without a length is cut
    off at the limit. The rest is read and discarded, so that the client can still read the
    response.
    """

    def __init__(self, app: Application, refuse: Refusal) -> None:
        self.app = app
        self.refuse = refuse
        self._large_forms = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            await self.refuse(scope, receive, send, CompressedBodyError())
            return
        limit = max_body_bytes(scope)
        is_chunked = b"transfer-encoding" in headers
        size = limit if is_chunked else int(headers.get(b"content-length", 0))
        if size > limit:
            await self.refuse(scope, receive, send, _too_large(limit))
            return
        if size > MAX_STRANGER_BYTES and (error := await in_thread(_sign_in_error, scope)):
            if not is_chunked or not isinstance(error, NotSignedInError):
                await self.refuse(scope, receive, send, error)
                return
            size = limit = MAX_STRANGER_BYTES
        is_large = size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if is_large and self._large_forms >= MAX_LARGE_FORMS:
            await self.refuse(scope, receive, send, TooManyUploadsError())
            return
        self._large_forms += is_large
        try:
            body = LimitedBody(limit, receive, send)
            await self.app(scope, body.receive, body.send)
        finally:
            self._large_forms -= is_large
        if body.is_too_large:
            await self.refuse(scope, receive, send, _too_large(limit))


def max_body_bytes(scope: Scope) -> int:
    """Return the limit for a request.

    It is higher for a form of an upload route with a session cookie or a token.
    """
    headers = dict(scope["headers"])
    session = f"{settings.SESSION_COOKIE_NAME}=".encode()
    is_form = (
        scope["method"] == "POST"
        and headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
        and any(
            name == b"authorization" or (name == b"cookie" and session in value)
            for name, value in scope["headers"]
        )
        and UPLOAD_PATHS.fullmatch(scope["path"].removeprefix(scope.get("root_path", "")))
    )
    return settings.MAX_FORM_BYTES if is_form else settings.DATA_UPLOAD_MAX_MEMORY_SIZE


def _sign_in_error(scope: Scope) -> DomainError | None:
    """Return an error unless the session cookie or the token of a request is valid."""
    # Imported on demand, because the modules need Django's set-up.
    from projects.authentication import is_signed_in

    try:
        return None if is_signed_in(ASGIRequest(scope, BytesIO())) else NotSignedInError()
    except DatabaseError as error:
        if outage := as_outage(error):
            return outage
        raise


def _too_large(limit: int) -> LimitError:
    # In the language of the response.
    return LimitError(lazy(too_large_message, str)(limit))


class LimitedBody:
    """The receive and send channels of a request whose body is limited to `max_bytes`.

    After the limit, the application receives a disconnect, and its response is discarded.
    """

    def __init__(self, max_bytes: int, receive: Receive, send: Send) -> None:
        self.bytes_left = max_bytes
        self._receive = receive
        self._send = send

    @property
    def is_too_large(self) -> bool:
        return self.bytes_left < 0

    async def receive(self) -> Message:
        if not self.is_too_large:
            message = await self._receive()
            self.bytes_left -= len(message.get("body", b""))
        return {"type": "http.disconnect"} if self.is_too_large else message

    async def send(self, message: Message) -> None:
        if not self.is_too_large:
            await self._send(message)


def error_application(error: DomainError) -> Application:
    """Return an ASGI application that responds with `error` to every request."""

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        request = ASGIRequest(scope, BytesIO())
        with translation.override(page_language(request)):
            response = domain_error(request, error)
        headers = {**response.headers, "Content-Length": str(len(response.content))}
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": error.status, "headers": pairs})
        await send({"type": "http.response.body", "body": response.content})

    return respond
