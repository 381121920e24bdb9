"""Forms with files: where they may be large, and how many at the same time."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from config.http import body_limit
from config.http.body_limit import (
    MAX_LARGE_FORMS,
    MAX_STRANGER_BYTES,
    BodyLimitMiddleware,
    NotSignedInError,
    TooManyUploadsError,
    error_application,
    max_body_bytes,
)
from projects.core.database import fetch
from projects.core.models import new_id
from projects.core.outages import DatabaseUnavailableError
from projects.models import Token

SMALL, LARGE = settings.DATA_UPLOAD_MAX_MEMORY_SIZE, settings.MAX_FORM_BYTES
SESSION = (b"cookie", b"a=b; sessionid=abc")
TOKEN = (b"authorization", b"Bearer abc")
UPLOADS = {"session-new", "session-post", "files", "imports", "api-files", "api-imports"}
# Images of at most 20 MB, and Markdown files.
SMALL_UPLOADS = {"session-images", "api-attachments", "saved-prompts"}


def scope(path: str, *headers: tuple[bytes, bytes], method: str = "POST") -> dict:
    form = (b"content-type", b"multipart/form-data; boundary=x")
    return {"type": "http", "method": method, "path": path, "headers": [form, *headers]}


def routes(resolver: URLResolver | None = None) -> list[URLPattern]:
    found = []
    for pattern in (resolver or get_resolver()).url_patterns:
        found += routes(pattern) if isinstance(pattern, URLResolver) else [pattern]
    return found


def path_of(name: str) -> str:
    [(_template, keys)] = get_resolver().reverse_dict[name][0]
    values = {"slug": "billing", "pk": new_id()}
    return reverse(name, kwargs={key: values[key] for key in keys})


def test_forms_of_upload_routes_may_be_large_with_a_session_or_a_token():
    for name in UPLOADS:
        for header in (SESSION, TOKEN):
            assert max_body_bytes(scope(path_of(name), header)) == LARGE, name


def test_no_other_body_may_be_large():
    files = path_of("files")
    bodies = [
        scope(files),
        scope(files, (b"cookie", b"csrftoken=sessionid")),
        scope(files, SESSION, method="GET"),
        scope(files, SESSION, (b"content-type", b"application/json")),
        scope(f"{files}x/", SESSION),
        scope(f"/nowhere{files}", SESSION),
        scope("/accounts/login/", SESSION),
        scope("/mcp", TOKEN),
        *(scope(path_of(name), SESSION) for name in SMALL_UPLOADS),
    ]
    assert {max_body_bytes(body) for body in bodies} == {SMALL}


def test_every_view_that_reads_files_is_known():
    names = set()
    for route in routes():
        view = getattr(route.callback, "view_class", None) or getattr(route.callback, "cls", None)
        parsers = [parser.__name__ for parser in getattr(view, "parser_classes", ())]
        if (
            view
            and view.__module__.startswith(("chat", "memory", "projects"))
            and parsers == ["MultiPartParser"]
        ):
            names.add(route.name)
    assert names == {name for name in UPLOADS | SMALL_UPLOADS if name.startswith("api-")}
    root = Path(settings.BASE_DIR)
    readers = {
        f"{path.parent.name}.{path.stem}"
        for app in ("chat", "memory", "projects", "config")
        for path in (root / app).rglob("*.py")
        if re.search(r"request\.FILES", path.read_text())
    }
    assert readers == {
        *("views.sessions", "views.attachments", "views.saved_prompts", "views.imports"),
        "files.listing",
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("size", [SMALL + 1, MAX_STRANGER_BYTES + 1])
def test_a_large_form_is_received_from_users_only(owner, client, size):
    def header(key: str) -> tuple[bytes, bytes]:
        return b"cookie", f"{settings.SESSION_COOKIE_NAME}={key}".encode()

    anonymous = SessionStore()
    anonymous["number"] = 1
    anonymous.save()
    client.force_login(owner)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    token, secret = Token.issue(owner)
    bearer = (b"authorization", f"Bearer {secret}".encode())
    received: list[tuple[bytes, bytes]] = []

    async def app(scope, receive, send) -> None:
        received.append(scope["headers"][1])

    async def refuse(scope, receive, send, error) -> None:
        assert type(error) is NotSignedInError

    def post(*headers: tuple[bytes, bytes]) -> None:
        limited = BodyLimitMiddleware(app, refuse)
        length = (b"content-length", str(size).encode())
        asyncio.run(limited(scope(path_of("files"), *headers, length), None, None))

    strangers = [header("made-up"), header(""), header(anonymous.session_key), TOKEN]
    for stranger in strangers:
        post(stranger)
    # A proxy may add a token of its own to the requests of a browser.
    post(TOKEN, header(session))
    post(header(session))
    post(bearer)
    assert received == [TOKEN, header(session), bearer]
    token.delete()
    client.logout()
    post(header(session))
    post(bearer)
    assert len(received) == 3


def test_the_length_of_a_body_that_is_sent_in_chunks_does_not_count(monkeypatch):
    monkeypatch.setattr(body_limit, "_sign_in_error", lambda scope: NotSignedInError())
    limits = []

    async def app(scope, receive, send) -> None:
        limits.append(receive.__self__.bytes_left)

    both = (b"content-length", b"10"), (b"transfer-encoding", b"chunked")
    request = scope(path_of("files"), SESSION, *both)
    asyncio.run(BodyLimitMiddleware(app, None)(request, None, None))
    assert limits == [MAX_STRANGER_BYTES]


@pytest.mark.django_db(transaction=True)
def test_a_large_form_is_503_without_the_database(monkeypatch):
    def end_connection(*_: object) -> None:
        fetch("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(SessionStore, "load", end_connection)
    refused = []

    async def refuse(scope, receive, send, error) -> None:
        refused.append(error)

    size = (b"content-length", str(SMALL + 1).encode())
    session = (b"cookie", f"{settings.SESSION_COOKIE_NAME}=made-up-key".encode())
    request = scope(path_of("files"), session, size)
    asyncio.run(BodyLimitMiddleware(None, refuse)(request, None, None))
    assert [type(error) for error in refused] == [DatabaseUnavailableError]


def test_few_large_forms_are_received_at_the_same_time(monkeypatch):
    monkeypatch.setattr(body_limit, "_sign_in_error", lambda scope: None)

    async def check() -> None:
        end, refused = asyncio.Event(), []

        async def app(scope, receive, send) -> None:
            await end.wait()

        async def refuse(scope, receive, send, error) -> None:
            refused.append(error)

        limited = BodyLimitMiddleware(app, refuse)
        large = (b"content-length", str(SMALL + 1).encode())
        small = (b"content-length", b"1000")

        def post(*headers):
            body = scope(path_of("files"), SESSION, *headers)
            return asyncio.create_task(limited(body, None, None))

        # A body without a length may be large.
        chunked = (b"transfer-encoding", b"chunked")
        running = [post(large) for _ in range(MAX_LARGE_FORMS - 1)]
        running += [post(chunked), post(small), post()]
        while limited._large_forms < MAX_LARGE_FORMS:
            await asyncio.sleep(0.01)
        await post(large)
        await post(chunked)
        assert [type(error) for error in refused] == [TooManyUploadsError] * 2
        end.set()
        await asyncio.gather(*running)
        await post(large)
        assert len(refused) == 2

    asyncio.run(check())


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_refused_form_may_be_sent_again_later(accept):
    messages: list[dict] = []

    async def send(message) -> None:
        messages.append(message)

    request = scope("/projects/billing/files/", (b"accept", accept.encode()))
    asyncio.run(error_application(TooManyUploadsError())(request, None, send))
    start, body = messages
    assert start["status"] == 503
    assert dict(start["headers"])[b"retry-after"] == b"30"
    text = body["body"].decode()
    if accept == "text/html":
        assert "<h1>" in text
    else:
        text = json.loads(text)["detail"]
    assert "Too many files are being uploaded." in text
