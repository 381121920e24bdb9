"""Applies Django's header middleware to ASGI applications that run beside Django."""

from io import BytesIO
from typing import Any

from csp.middleware import CSPMiddleware
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from config.http.body_limit import Application, Message, Receive, Scope, Send
from config.http.error_pages import bad_request
from config.http.middleware import SecurityHeadersMiddleware

# These middlewares only read headers, so that nothing waits for a body or a stream.
MIDDLEWARE: tuple[type[Any], ...] = (
    SecurityMiddleware,
    CSPMiddleware,
    SecurityHeadersMiddleware,
    XFrameOptionsMiddleware,
)


class SecurityASGIMiddleware:
    """ASGI middleware that checks the host, redirects to HTTPS and adds security headers."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = ASGIRequest(scope, BytesIO())
        # Created for each request, because they read the settings when they are created.
        chain = [middleware(lambda request: HttpResponse()) for middleware in MIDDLEWARE]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _merge_headers(request, chain, message)}
            await send(message)

        response = _early_response(request, chain)
        if response is None:
            await self.app(scope, receive, send_with_headers)
            return
        headers = _encode_headers(response)
        headers.append((b"content-length", b"%d" % len(response.content)))
        status = response.status_code
        await send_with_headers(
            {"type": "http.response.start", "status": status, "headers": headers}
        )
        await send_with_headers({"type": "http.response.body", "body": response.content})


def _early_response(request: HttpRequest, chain: list[Any]) -> HttpResponse | None:
    """Return the response to an unknown host or a redirect to HTTPS; None for other requests."""
    try:
        request.get_host()
    except DisallowedHost as error:
        return bad_request(request, error)
    for middleware in chain:
        if hasattr(middleware, "process_request") and (
            response := middleware.process_request(request)
        ):
            return response
    return None


def _merge_headers(
    request: HttpRequest, chain: list[Any], start: Message
) -> list[tuple[bytes, bytes]]:
    """Return the application's headers, and those of the middleware that it did not set."""
    headers = list(start.get("headers", ()))
    response = HttpResponse(status=start["status"])
    del response["Content-Type"]
    for middleware in reversed(chain):
        middleware.process_response(request, response)
    names = {name.lower() for name, _value in headers}
    return headers + [header for header in _encode_headers(response) if header[0] not in names]


def _encode_headers(response: HttpResponse) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in response.items()]
