"""Invalid requests to the API return a JSON error with a reason."""

import json

import pytest
from django.db import transaction

from projects.core.api.json import MAX_PARTS
from tests.access.access_rules import API, DOORS
from tests.access.routes import routes
from tests.access.world import token_of

pytestmark = pytest.mark.django_db

JSON = "application/json"
TEXTS = ["content", "text", "title", "name", "summary", "emoji", "role", "username", "append"]
TEXTS += ["subject", "predicate", "object", "user", "action", "url", "state", "message", "session"]
TEXTS += ["project"]
NUMBERS = ["history_limit", "bank_max_tokens", "idle_minutes", "revision", "position", "confidence"]
NUMBERS += [
    "close_after_hours",
    "min_index_chars",
    "keep_days",
    "memory_daily_tokens",
    "before",
    "valid_from",
    "created_at",
    "expires_at",
    "entries",
]


def each(names: list[str], value: object) -> str:
    """A request in which everything of this kind that a route may look for is `value`."""
    return json.dumps({name: value for name in names})


NONSENSE = {
    "no JSON": (JSON, "{"),
    "not UTF-8": (JSON, b'{"name": "\xff"}'),
    "no number": (JSON, '{"name": NaN}'),
    "a list": (JSON, "[1]"),
    "a text": (JSON, '"name"'),
    "nothing": (JSON, "null"),
    "too deep": (JSON, "[" * 100_000),
    "zeros in texts": (JSON, each(TEXTS, "a\0b")),
    "half characters": (JSON, each(TEXTS, "\ud800")),
    "objects for texts": (JSON, each(TEXTS, {"a": [1]})),
    "a huge number": (JSON, each(NUMBERS, 10**400)),
    "a number of many digits": (JSON, f'{{"name": {"9" * 10_000}}}'),
    "another media type": ("text/plain", "Hello."),
    "a media type that is none": ("nonsense", "{}"),
    "a form": ("application/x-www-form-urlencoded", "name=x"),
    "a form without its boundary": ("multipart/form-data", "x"),
    "a form that breaks off": ("multipart/form-data; boundary=x", '--x\r\nContent-Disp"'),
}
ROUTES = [route for route in routes() if route.name in API]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_nonsense_is_refused_with_the_reason(route, world):
    door = DOORS[route.name]
    if door.streams:
        return
    path, client = world.address(route, door.values), token_of(world.owner)
    for label, (kind, body) in NONSENSE.items():
        for method in {*door.methods} - {"GET", "DELETE"}:
            with transaction.atomic():
                answer = client.generic(method, path, body, kind)
                transaction.set_rollback(True)
            assert answer.status_code < 500, (method, label)
            if answer.status_code >= 400:
                assert answer.status_code in (400, 404, 409, 413, 415), (method, label)
                assert is_problem(answer.json()), (method, label, answer.json())


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_nonsense_in_the_address_is_refused_or_passed_over(route, world):
    door = DOORS[route.name]
    if "GET" not in door.methods or door.streams:
        return
    path, client = world.address(route, door.values), token_of(world.owner)
    for query in (
        "q=%00&cursor=%00&page_size=%00&session=%00&state=%00&user=%00&as_of=%00&since=%00",
        "q=%ff&cursor=%ff&author=%ff&subject=%ff&content=%ff&creator=%00&by=%00&emoji=%00",
        "cursor=" + "A" * 5_000 + "&page_size=99999999999999999999&after=99999999999999999999",
        "since=9999-12-31T23:59:59-23:59&until=0001-01-01T00:00:00%2B23:59&format=x&scope=x",
        "limit=1e999&token_budget=-1&valid_at=-1&recorded_at=x&ordering=%00",
    ):
        with transaction.atomic():
            answer = client.get(f"{path}?{query}")
            transaction.set_rollback(True)
        assert answer.status_code in (200, 400, 404), query
        if answer.status_code != 200:
            assert is_problem(answer.json()), (query, answer.json())


def is_problem(reason: object) -> bool:
    """Whether it is {"detail": …} or {"field": […]}."""
    if not isinstance(reason, dict) or not reason:
        return False
    if isinstance(reason.get("detail"), str):
        return True
    return all(
        isinstance(reasons, list) and reasons and all(isinstance(item, str) for item in reasons)
        for reasons in reason.values()
    )


@pytest.mark.parametrize("path", ["/api/v1/nowhere/", "/api/v1/projects", "/api/", "/api/v1/\n/"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_there_is_no_such_route(client, path, method):
    answer = client.generic(method, path)
    assert answer.status_code == 404
    assert list(answer.json()) == ["detail"]


def test_a_method_that_a_route_lacks_is_refused_in_json(world):
    answer = token_of(world.owner).put("/api/v1/projects/")
    assert answer.status_code == 405
    assert list(answer.json()) == ["detail"]
    assert "POST" in answer.headers["Allow"]


@pytest.mark.parametrize("path", ["/api/v1/projects/", "/v1/chat/completions"])
def test_a_body_of_too_many_values_is_refused(world, path):
    body = {"name": "Lists", "model": "x", "messages": [{}], "values": [[]] * MAX_PARTS}
    answer = token_of(world.owner).post(path, json.dumps(body), JSON)
    assert answer.status_code == 413
    assert "The JSON has too many values." in answer.content.decode()
