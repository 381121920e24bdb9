"""/mcp stands beside Django: its answers are guarded as those of Django's views are."""

import asyncio
from contextlib import suppress

import httpx2
import pytest

from config.asgi import application
from config.http.asgi_middleware import SecurityASGIMiddleware

GUARDS = {
    "content-security-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "permissions-policy",
    "referrer-policy",
    "x-content-type-options",
    "x-frame-options",
}
TLS = {"X-Forwarded-Proto": "https"}


def ask(path: str = "/mcp", host: str = "testserver", **headers: str) -> httpx2.Response:
    async def go():
        transport = httpx2.ASGITransport(app=application)
        async with httpx2.AsyncClient(transport=transport) as http:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await http.post(f"http://{host}{path}", json={}, headers=named)

    return asyncio.run(go())


@pytest.fixture
def over_tls(settings) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_SSL_HOST = True, "strata.example.org"
    settings.SECURE_HSTS_SECONDS = 60
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")


def test_an_answer_has_the_headers_of_any_other():
    ours, others = ask(), ask("/v1/nothing")
    assert (ours.status_code, others.status_code) == (401, 404)
    assert others.headers.keys() >= GUARDS
    for name in GUARDS:
        assert ours.headers.get_list(name) == others.headers.get_list(name), name
    assert "strict-transport-security" not in ours.headers
    assert ours.headers["x-request-id"]


def test_a_request_without_tls_is_redirected_to_https(over_tls):
    answer = ask()
    assert answer.status_code == 301
    assert answer.headers["location"] == "https://strata.example.org/mcp"
    assert "strict-transport-security" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]


def test_https_responses_have_hsts(over_tls):
    answer = ask(**TLS)
    assert answer.status_code == 401
    assert answer.headers["strict-transport-security"] == "max-age=60"
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/v1/nothing"])
def test_a_request_for_another_host_is_refused(path):
    answer = ask(path, host="evil.example")
    assert answer.status_code == 400
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_refusal_is_json():
    assert "STRATA_ALLOWED_HOSTS" in ask(host="evil.example").json()["detail"]


def test_a_stream_goes_through_piece_by_piece():
    sent = []

    async def count(scope, receive, send):
        headers = [(b"content-type", b"text/event-stream"), (b"X-Frame-Options", b"SAMEORIGIN")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number in range(3):
            piece = {"type": "http.response.body", "body": b"%d" % number, "more_body": True}
            await send(piece)
            assert sent[-1] is piece
        raise ConnectionResetError

    async def keep(message):
        sent.append(message)

    async def go():
        headers = [(b"host", b"testserver")]
        scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
        with suppress(ConnectionResetError):
            await SecurityASGIMiddleware(count)(scope | {"query_string": b""}, None, keep)

    asyncio.run(go())
    [start, *pieces] = sent
    assert [piece["body"] for piece in pieces] == [b"0", b"1", b"2"]
    # What the application says itself stands.
    framed = [value for name, value in start["headers"] if name.lower() == b"x-frame-options"]
    assert framed == [b"SAMEORIGIN"]
