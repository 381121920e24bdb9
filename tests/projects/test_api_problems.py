"""Errors have one shape, however deep they lie."""

import pytest

from projects.api.problems import flat


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"detail": "Not found."}, {"detail": "Not found."}),
        ({"name": ["No."]}, {"name": ["No."]}),
        ({"ids": {0: ["No id."], 2: ["Nor this."]}}, {"ids": ["0: No id.", "2: Nor this."]}),
        ({"a": {"b": {"c": ["No."]}}}, {"a": ["b: c: No."]}),
        (["No."], {"non_field_errors": ["No."]}),
    ],
)
def test_errors_are_told_by_field(told, shown):
    assert flat(told) == shown


@pytest.mark.django_db
def test_a_list_says_which_of_it_is_wrong(api, owner, project):
    wish = {"action": "pin", "entries": ["x"]}
    answer = api(owner).post("/api/v1/projects/billing/memory/act/", wish, format="json")
    assert answer.status_code == 400
    assert answer.json() == {"entries": ["0: Must be a valid UUID."]}
