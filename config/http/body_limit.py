"""Limits the size of request bodies before a body is stored.

Django writes a complete body to a temporary file before it calls a view. Therefore the limit is
enforced in ASGI.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string

from config.http.error_pages import error_body, too_large_message, wants_json

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyLimitMiddleware:
    """ASGI middleware that calls `refuse` if the body is larger than every route accepts.

    If Content-Length is too large, the request is refused at once. A body without a length is cut
    off at the limit. The rest is read and discarded, so that the client can still read the
    response.
    """

    def __init__(self, app: Application, refuse: Application) -> None:
        self.app = app
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        limit = max_body_bytes(headers)
        if int(headers.get(b"content-length", 0)) > limit:
            await self.refuse(scope, receive, send)
            return
        body = LimitedBody(limit, receive, send)
        await self.app(scope, body.receive, body.send)
        if body.is_too_large:
            await self.refuse(scope, receive, send)


def max_body_bytes(headers: Mapping[bytes, bytes]) -> int:
    """Return the limit for a request with these headers. It is higher for forms with files."""
    is_form = headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
    limit: int = settings.MAX_FORM_BYTES if is_form else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return limit


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


async def body_too_large(scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI application that responds 413 to every request."""
    request_headers = dict(scope["headers"])
    message = too_large_message(max_body_bytes(request_headers))
    if wants_json(scope["path"], request_headers.get(b"accept", b"").decode("latin-1")):
        content_type, text = b"application/json", json.dumps(error_body(scope["path"], message))
    else:
        content_type = b"text/html; charset=utf-8"
        text = render_to_string("413.html", {"reason": message})
    body = text.encode()
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
