"""For an ASGI application that stands beside Django: what Django's middlewares ask of a request
before a view sees it, and what they tell of every answer.
"""

from io import BytesIO
from typing import Any

from csp.middleware import CSPMiddleware
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from config.bodies import Application, Message, Receive, Scope, Send
from config.errors import refused
from config.headers import Confined

# Those that look at headers alone, so that nothing waits for a body or a stream.
MIDDLEWARE: tuple[type[Any], ...] = (
    SecurityMiddleware,
    CSPMiddleware,
    Confined,
    XFrameOptionsMiddleware,
)


class Guarded:
    """The ASGI application `app`, which hears of requests to this host alone, and over TLS where
    the settings ask for it.
    """

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = ASGIRequest(scope, BytesIO())
        # They read the settings when they are made.
        guards = [one(lambda request: HttpResponse()) for one in MIDDLEWARE]

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _completed(request, guards, message)}
            await send(message)

        if answer := _refusal(request, guards):
            await tell(_start(answer))
            await tell({"type": "http.response.body", "body": answer.content})
        else:
            await self.app(scope, receive, tell)


def _refusal(request: HttpRequest, guards: list[Any]) -> HttpResponse | None:
    """What is answered in the application's stead, if anything is."""
    try:
        request.get_host()
    except DisallowedHost as error:
        return refused(request, error)
    asking = [one for one in guards if hasattr(one, "process_request")]
    return next(filter(None, (one.process_request(request) for one in asking)), None)


def _start(answer: HttpResponse) -> Message:
    told = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    told.append((b"content-length", b"%d" % len(answer.content)))
    return {"type": "http.response.start", "status": answer.status_code, "headers": told}


def _completed(
    request: HttpRequest, guards: list[Any], start: Message
) -> list[tuple[bytes, bytes]]:
    """The headers of an answer that begins, and those of the guards that it lacks."""
    said = list(start.get("headers", ()))
    response = HttpResponse(status=start["status"])
    del response["Content-Type"]
    for guard in reversed(guards):
        guard.process_response(request, response)
    names = {name.lower() for name, _value in said}
    added = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    return said + [(name, value) for name, value in added if name not in names]
