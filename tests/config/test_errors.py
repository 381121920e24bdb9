"""What programs and people are told where no view gets to answer."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.views.debug import get_default_exception_reporter_filter

pytestmark = pytest.mark.django_db

IMPORTS = "/api/v1/projects/billing/imports/"


def test_a_form_with_too_many_words_is_413(api, client, owner, project, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
    form = {"file": SimpleUploadedFile("a.jsonl", b"{}"), "format": "x" * 1_000_001}
    answer = api(owner).post(IMPORTS, form)
    assert answer.status_code == 413
    assert answer.json() == {"detail": "This is larger than 1 MB, the most that is taken at once."}
    client.force_login(owner)
    page = client.post("/projects/billing/chats/", {"content": "x" * 1_000_001}, headers=HTML)
    assert page.status_code == 413
    assert "This is larger than 1 MB" in page.content.decode()


HTML = {"Accept": "text/html"}


def test_a_request_that_cannot_be_read_is_400(api, client, owner, project, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    answer = api(owner).post(IMPORTS, {str(number): "x" for number in range(5)})
    assert (answer.status_code, answer.json()) == (400, {"detail": "This request cannot be read."})
    client.force_login(owner)
    form = {str(number): "x" for number in range(5)}
    page = client.post("/projects/billing/chats/", form, headers=HTML)
    assert (page.status_code, page["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_an_unknown_route_is_404_in_json(api, owner):
    assert api(owner).get("/api/v1/nowhere/").json() == {"detail": "Not found."}


def test_a_page_of_an_error_shows_no_secret(settings):
    settings.DATABASE_URL = "postgresql://ana:canary@db/strata"
    settings.CELERY_BROKER_URL = "redis://:canary@redis/0"
    settings.METRICS_TOKEN = settings.ADMIN_PASSWORD = settings.SECRET_KEY = "canary"
    shown = get_default_exception_reporter_filter().get_safe_settings()
    assert shown["TIME_ZONE"] == "UTC"
    assert "canary" not in str(shown)
