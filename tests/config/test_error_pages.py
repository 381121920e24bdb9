"""Error responses for programs and people outside of any view."""

import errno
import io
import logging
import os
from collections.abc import Iterator

import psycopg
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client
from django.views.debug import get_default_exception_reporter_filter

from config.observability import logging as logs
from projects.core.errors import (
    ConflictError,
    InvalidInputError,
    LimitError,
    NotAllowedError,
    NotFoundError,
    StaleVersionError,
    UnavailableError,
)

pytestmark = pytest.mark.django_db

IMPORTS = "/api/v1/projects/billing/imports/"
# Accepts only POST requests.
REVOKE = "/account/tokens/0190163d-8694-739b-aea5-966c26f8ad91/revoke/"


def test_a_form_with_too_many_words_is_413(api, client, owner, project, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
    form = {"file": SimpleUploadedFile("a.jsonl", b"{}"), "format": "x" * 1_000_001}
    answer = api(owner).post(IMPORTS, form)
    assert answer.status_code == 413
    assert answer.json() == {"detail": "The request is too large. The limit is 1 MB."}
    client.force_login(owner)
    page = client.post("/projects/billing/chats/", {"content": "x" * 1_000_001}, headers=HTML)
    assert page.status_code == 413
    assert "The limit is 1 MB" in page.content.decode()


HTML = {"Accept": "text/html"}


def test_a_request_that_cannot_be_read_is_400(api, client, owner, project, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    answer = api(owner).post(IMPORTS, {str(number): "x" for number in range(5)})
    assert (answer.status_code, answer.json()) == (
        400,
        {"detail": "The server could not read this request."},
    )
    client.force_login(owner)
    form = {str(number): "x" for number in range(5)}
    page = client.post("/projects/billing/chats/", form, headers=HTML)
    assert (page.status_code, page["Content-Type"]) == (400, "text/html; charset=utf-8")


def openai(kind: str, message: str) -> dict[str, object]:
    return {"message": message, "type": kind, "param": None, "code": None}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/nowhere/", {"detail": "Not found."}),
        ("/api/v1/nowhere", {"detail": "Not found. Routes end in a slash."}),
        ("/v1/embeddings", {"error": openai("invalid_request_error", "Not found.")}),
    ],
)
def test_an_unknown_route_is_404_in_json(api, owner, path, expected):
    answer = api(owner).post(path)
    assert (answer.status_code, answer.json()) == (404, expected)


def test_the_address_of_a_form_is_a_page_with_a_way_back(client, owner):
    client.force_login(owner)
    answer = client.get(REVOKE, headers=HTML)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert '<a href="/">' in answer.content.decode()
    assert client.get(REVOKE).content == b""


@pytest.mark.parametrize(
    ("path", "referer", "next_page"),
    [
        ("/account/", "https://strata.example.org/", "/account/"),
        (REVOKE, "https://strata.example.org/account/tokens/?a=1", "/account/tokens/%3Fa%3D1"),
        (REVOKE, "https://evil.example/account/tokens/", "/"),
        (REVOKE, "", "/"),
        (REVOKE, "http://[", "/"),
    ],
)
def test_after_signing_in_the_page_with_the_form_opens(client, settings, path, referer, next_page):
    settings.URL = "https://strata.example.org"
    ask = client.post if path == REVOKE else client.get
    answer = ask(path, headers={"Referer": referer}, secure=True)
    assert answer["Location"] == f"/accounts/login/?next={next_page}"


def test_the_page_of_an_expired_form_advises_to_copy_the_text(owner, project):
    browser = Client(enforce_csrf_checks=True, headers={"Accept": "text/html"})
    browser.force_login(owner)
    page = browser.post("/projects/billing/notes/", {"text": "The door code is 4711."})
    assert page.status_code == 403
    assert "copy your text" in page.content.decode()


def test_an_unknown_host_is_named_as_the_reason(client):
    page = client.get("/accounts/login/", headers={"host": "strata.lan", **HTML})
    assert page.status_code == 400
    assert "STRATA_ALLOWED_HOSTS" in page.content.decode()
    answer = client.get("/v1/models", headers={"host": "strata.lan"})
    assert "STRATA_ALLOWED_HOSTS" in answer.json()["error"]["message"]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What stands in the log since the test began."""
    line_formatter = logs.configuration("INFO", as_json=False)["formatters"]["line"]
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(line_formatter.pop("()")(**line_formatter))
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


FAILED = "Internal error: see Strata's log."


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/projects/", {"detail": FAILED}),
        ("/v1/models", {"error": openai("server_error", FAILED)}),
    ],
)
def test_server_errors_are_json_for_programs_and_are_logged(
    api, owner, monkeypatch, path, expected, log
):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("can" + "ary")

    monkeypatch.setattr("projects.permissions.Project.objects.visible_to", fail)
    client = api(owner)
    client.raise_request_exception = False
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (500, expected)
    output = log.getvalue()
    assert "request_failed" in output
    assert "in fail" in output and "\nRuntimeError\n" in output
    assert "canary" not in output


def disk_full(*_: object, **__: object) -> None:
    raise OperationalError from psycopg.errors.DiskFull("could not extend file")


def no_space_left(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("fail", [disk_full, no_space_left])
def test_a_full_disk_is_503_in_the_response_and_in_the_log(api, owner, monkeypatch, log, fail):
    monkeypatch.setattr("projects.permissions.Project.objects.visible_to", fail)
    client = api(owner)
    client.raise_request_exception = False
    answer = client.get("/api/v1/projects/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "30")
    assert "The disk of the server is full." in answer.json()["detail"]
    assert "request_failed code=503" in log.getvalue()


def test_a_page_of_an_error_shows_no_secret(settings):
    settings.DATABASE_URL = "postgresql://ana:canary@db/strata"
    settings.CELERY_BROKER_URL = "redis://:canary@redis/0"
    settings.METRICS_TOKEN = settings.ADMIN_PASSWORD = settings.SECRET_KEY = "canary"
    safe_settings = get_default_exception_reporter_filter().get_safe_settings()
    assert safe_settings["TIME_ZONE"] == "UTC"
    assert "canary" not in str(safe_settings)


@pytest.mark.parametrize(
    ("error", "heading"),
    [
        (InvalidInputError, "Bad request"),
        (NotAllowedError, "Access denied"),
        (ConflictError, "Not available right now"),
        (StaleVersionError, "Not available right now"),
        (LimitError, "Too large"),
        (UnavailableError, "Not available right now"),
    ],
)
def test_a_domain_error_of_a_page_shows_its_message(client, owner, monkeypatch, error, heading):
    def fail(*_: object, **__: object) -> None:
        raise error("Because of this.")

    monkeypatch.setattr("memory.views.project_list.create_project", fail)
    client.force_login(owner)
    page = client.post("/", {"name": "Billing"}, headers=HTML)
    assert page.status_code == error.status
    assert f"<h1>{heading}</h1>" in page.content.decode()
    assert "Because of this." in page.content.decode()
    # Scripts of pages do not accept HTML.
    response = client.post("/", {"name": "Billing"}, headers={"Accept": "*/*"})
    assert (response.status_code, response.json()) == (error.status, {"detail": "Because of this."})


def test_a_missing_object_is_the_same_page_as_a_missing_address(client, owner, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise NotFoundError("There is no such thing.")

    client.force_login(owner)
    missing = client.get("/projects/nowhere/settings/", headers=HTML)
    monkeypatch.setattr("projects.views.projects.membership", fail)
    page = client.get("/projects/nowhere/settings/", headers=HTML)
    assert (page.status_code, page.content) == (404, missing.content)


def test_a_domain_error_with_a_time_to_wait_sends_retry_after(client, owner, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        error = UnavailableError("Busy.")
        error.retry_after_s = 7
        raise error

    monkeypatch.setattr("memory.views.project_list.create_project", fail)
    client.force_login(owner)
    page = client.post("/", {"name": "Billing"}, headers=HTML)
    assert (page.status_code, page["Retry-After"]) == (503, "7")
