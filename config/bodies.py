"""How large a request may be, told before its body is kept anywhere.

Django writes a whole body to a temporary file before any view runs, so that it is bounded here.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

# Where programs are answered, in JSON whatever they accept.
PROGRAMS = ("/api/", "/v1/", "/mcp")

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class BoundedBodies:
    """The ASGI application `app`, given no body that is larger than any of its routes takes.

    One that says so in its header is answered by `refuse` at once; one that does not say how long
    it is, where it passes the bound. What still comes of it then is thrown away, so that its sender
    gets to read the answer.
    """

    def __init__(self, app: Application, refuse: Application) -> None:
        self.app = app
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        most = bound(headers)
        if int(headers.get(b"content-length", 0)) > most:
            await self.refuse(scope, receive, send)
            return
        body = _Body(most, receive, send)
        await self.app(scope, body.receive, body.send)
        if body.is_too_large:
            await self.refuse(scope, receive, send)


def bound(headers: Mapping[bytes, bytes]) -> int:
    """The most bytes that a request with these headers may have: files are sent as forms."""
    form = headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
    most: int = settings.MAX_FORM_BYTES if form else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return most


class _Body:
    """A body on its way to the application, which ends for it as if its sender had left where it
    has more than `most` bytes. What the application says to that is not sent.
    """

    def __init__(self, most: int, receive: Receive, send: Send) -> None:
        self.left = most
        self._receive = receive
        self._send = send

    @property
    def is_too_large(self) -> bool:
        return self.left < 0

    async def receive(self) -> Message:
        if not self.is_too_large:
            message = await self._receive()
            self.left -= len(message.get("body", b""))
        return {"type": "http.disconnect"} if self.is_too_large else message

    async def send(self, message: Message) -> None:
        if not self.is_too_large:
            await self._send(message)


async def too_large_answer(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application that says 413 to all."""
    headers = dict(scope["headers"])
    reason = too_large(bound(headers))
    if reads_json(scope["path"], headers.get(b"accept", b"").decode("latin-1")):
        kind, told = b"application/json", json.dumps(in_json(scope["path"], reason))
    else:
        kind, told = b"text/html; charset=utf-8", render_to_string("413.html", {"reason": reason})
    body = told.encode()
    answer = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 413, "headers": answer})
    await send({"type": "http.response.body", "body": body})


def too_large(most: int) -> str:
    reason = _("This is larger than %(most)s MB, the most that is taken at once.")
    return reason % {"most": f"{most / 1e6:.0f}"}


def in_json(path: str, reason: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """An error as programs read it: in OpenAI's shape, with its `kind`, where its clients ask."""
    if not path.startswith("/v1/"):
        return {"detail": reason}
    about = {"type": kind, "param": None, "code": None}
    return {"error": {"message": reason} | about}


def reads_json(path: str, accept: str) -> bool:
    """Whether an error is told in JSON: to programs, and to the scripts of pages."""
    return path.startswith(PROGRAMS) or "text/html" not in accept
