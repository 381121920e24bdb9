"""Format and content of log lines. tests/operations checks whole processes."""

import json
import logging

import psycopg
import pytest
import structlog
from django.core.files.storage import default_storage
from django.db import IntegrityError, connection
from django.utils.module_loading import import_string

from chat.providers import ProviderError
from config.http.middleware import request_id
from config.observability import logging as logs
from config.observability.logging.processors import OWN_ERRORS, describe_error, format_traceback
from config.observability.metrics.celery import FAILURES, MAX_EVENTS, FailureCountHandler
from config.settings import env
from projects.models import Project


@pytest.fixture(autouse=True)
def _nothing_bound() -> None:
    """What a test before called outside of a request may have left its ids for all lines."""
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def line():
    """The line of a record, as text or as JSON."""

    def make(name: str, message: object, *args: object, as_json: bool = False, error=None) -> str:
        line_formatter = logs.configuration("DEBUG", as_json)["formatters"]["line"]
        formatter = line_formatter.pop("()")(**line_formatter)
        info = (type(error), error, error.__traceback__) if error else None
        record = logging.LogRecord(
            name, logging.WARNING, "/x/mcp/shared/session.py", 7, message, args, info
        )
        return formatter.format(record)

    return make


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


@pytest.mark.parametrize("place", sorted(OWN_ERRORS))
def test_paths_of_errors_with_safe_messages_exist(place):
    kind = import_string(place)
    assert f"{kind.__module__}.{kind.__name__}" == place


def test_a_line_for_people(line):
    text = line("chat.live", "reply_failed message=%s reason=%s", 7, 'It is "full".')
    assert text.endswith('Z WARNING chat.live reply_failed message=7 reason="It is \\"full\\"."')


def test_a_line_as_json(line):
    logged = line("memory.leases", "lease_lost %s=%s", "session", 7, as_json=True)
    payload = json.loads(logged)
    assert payload.pop("timestamp").startswith("20")
    assert payload == {
        "level": "warning",
        "logger": "memory.leases",
        "event": "lease_lost",
        "session": "7",
    }


def test_a_line_is_one_line(line):
    assert "\n" not in line("django", "Odd\nWARNING forged %s", "a\nb")
    assert "\n" not in line("chat", "odd value=%s", "a\nWARNING forged")


@pytest.mark.parametrize("as_json", [False, True])
def test_an_exception_is_logged_without_its_message(line, as_json):
    error = raised(KeyError("canary"), raised(ValueError("canary")))
    logged = line(
        "chat.conversations.messages", "reply_failed cause=%r", error, as_json=as_json, error=error
    )
    assert "canary" not in logged
    assert "KeyError" in logged and "ValueError" in logged and "test_logging.py" in logged


def test_the_message_of_a_library_is_left_out_and_its_place_is_logged(line):
    logged = line("root", "Failed to validate request: canary")
    assert logged.endswith("WARNING root library_message location=mcp/shared/session.py:7")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("canary"), "ValueError"),
        (ProviderError("The model did not answer."), "ProviderError: The model did not answer."),
        (OSError(28, "No space left on device", "canary"), "OSError: No space left on device"),
        (TypeError("unsupported operand"), "TypeError: unsupported operand"),
        (psycopg.OperationalError("no route to host\ncanary"), "OperationalError: no route"),
        (ExceptionGroup("canary", [ValueError("canary")]), "ExceptionGroup"),
    ],
)
def test_the_description_of_an_error_has_no_values(error, expected):
    assert expected in describe_error(error)
    assert "canary" not in describe_error(error) + format_traceback(error)


def test_errors_of_the_bucket_are_logged_with_their_code(bucket):
    bucket.outage = 403, "AccessDenied"
    with pytest.raises(Exception, match="Forbidden") as caught:
        default_storage.open("canary")
    description = describe_error(caught.value)
    assert description == "botocore.exceptions.ClientError: HeadObject 403"


@pytest.mark.django_db
def test_database_errors_are_logged_with_names_and_without_values(owner):
    Project.objects.create(name="canary", slug="canary")
    with pytest.raises(IntegrityError) as caught:
        Project.objects.bulk_create([Project(name="canary", slug="canary")])
    assert "canary" in str(caught.value)
    assert "23505 projects_project" in describe_error(caught.value)
    assert "canary" not in describe_error(caught.value)
    connection.needs_rollback = True


@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdef0123456789",
        "strata_0123456789abcdef0123456789",
        "whsec_0123456789abcdef",
        "sk-proj-0123456789",
        "known pass/word",
        "se cret%",
    ],
)
def test_secrets_are_blotted_out_wherever_they_stand(line, monkeypatch, secret):
    monkeypatch.setattr(env, "SECRETS", env.SECRETS)
    before = set(env.SECRETS)
    env.keep_out_of_logs("known pass/word")
    env.keep_out_of_logs("redis://:se%20cret%25@redis/0")
    for message in (f"odd {secret}", f"odd value={secret}"):
        assert secret not in line("chat", message) and "[secret]" in line("chat", message)
    assert secret not in line("chat", "odd value=%s", secret, as_json=True)
    env.SECRETS &= before


def test_a_request_s_id_is_taken_if_it_can_stand_in_a_line():
    assert request_id("a-proxy_s.1") == "a-proxy_s.1"
    for odd in (None, "", "a b", "a\nb", "x" * 129, "ä", "-a"):
        assert request_id(odd) != odd and len(request_id(odd)) == 36


def test_failures_are_counted_by_names_of_which_there_are_few():
    def count(kind: str) -> float:
        return FAILURES.labels(kind)._value.get()

    counting = FailureCountHandler()
    before = count("reply_failed"), count("webhook_delivery_failed"), count("other")
    for level, message in (
        (logging.WARNING, "reply_failed message=%s"),
        (logging.ERROR, {"event": "reply_failed"}),
        (logging.INFO, "reply_failed message=%s"),
        (logging.INFO, "webhook_delivery_failed delivery=%s"),
        (logging.ERROR, "Something else happened"),
    ):
        counting.emit(logging.LogRecord("chat", level, "", 1, message, (), None))
    after = count("reply_failed"), count("webhook_delivery_failed"), count("other")
    assert after == (before[0] + 2, before[1] + 1, before[2] + 1)
    for number in range(MAX_EVENTS * 2):
        name = f"made_up_{chr(97 + number % 26)}{chr(97 + number // 26)}"
        counting.emit(logging.LogRecord("chat", logging.ERROR, "", 1, name, (), None))
    [family] = FAILURES.collect()
    assert len({sample.labels["event"] for sample in family.samples}) <= MAX_EVENTS + 1
