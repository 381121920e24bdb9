"""Error responses of the REST API."""

import pytest
from rest_framework.exceptions import NotFound

from projects.core.api.exception_handler import flatten_errors, handle_exception
from projects.core.errors import (
    ConflictError,
    DomainError,
    InvalidInputError,
    LimitError,
    NotAllowedError,
    NotFoundError,
    StaleVersionError,
    UnavailableError,
)


@pytest.mark.parametrize(
    ("errors", "flat"),
    [
        ({"detail": "Not found."}, {"detail": "Not found."}),
        ({"name": ["No."]}, {"name": ["No."]}),
        ({"ids": {0: ["No id."], 2: ["Nor this."]}}, {"ids": ["0: No id.", "2: Nor this."]}),
        ({"a": {"b": {"c": ["No."]}}}, {"a": ["b: c: No."]}),
        (["No."], {"non_field_errors": ["No."]}),
    ],
)
def test_errors_are_grouped_by_field(errors, flat):
    assert flatten_errors(errors) == flat


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (InvalidInputError("Too long."), 400, {"detail": "Too long."}),
        (InvalidInputError("Too long.", field="name"), 400, {"name": ["Too long."]}),
        (NotAllowedError("Owners only."), 403, {"detail": "Owners only."}),
        (NotFoundError(), 404, {"detail": "Not found."}),
        (ConflictError("It is closed."), 409, {"detail": "It is closed."}),
        (
            StaleVersionError(),
            412,
            {"detail": "This has changed in the meantime. Reload and try again."},
        ),
        (LimitError("Too many."), 413, {"detail": "Too many."}),
        (UnavailableError("No model."), 503, {"detail": "No model."}),
    ],
)
def test_a_domain_error_becomes_its_status_and_message(error, status, body):
    response = handle_exception(error, {})
    assert response is not None
    assert (response.status_code, response.data) == (status, body)
    assert "Retry-After" not in response.headers


def test_retry_after_is_sent_where_an_error_has_one():
    error = UnavailableError("Busy.")
    error.retry_after_s = 7
    response = handle_exception(error, {})
    assert response is not None
    assert response["Retry-After"] == "7"


def test_other_exceptions_are_left_to_rest_framework():
    assert handle_exception(RuntimeError("x"), {}) is None
    response = handle_exception(NotFound(), {})
    assert response is not None and response.status_code == 404


def test_an_error_has_a_message_for_people_and_a_code_for_programs():
    assert str(DomainError()) == "This is not possible."
    assert (StaleVersionError().code, ConflictError("x", code="busy").code) == (
        "stale_version",
        "busy",
    )


@pytest.mark.django_db
def test_an_invalid_item_of_a_list_is_named_by_its_index(api, owner, project):
    body = {"action": "pin", "entries": ["x"]}
    response = api(owner).post("/api/v1/projects/billing/memory/act/", body, format="json")
    assert response.status_code == 400
    assert response.json() == {"entries": ["0: Must be a valid UUID."]}
