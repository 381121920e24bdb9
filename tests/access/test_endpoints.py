"""Every route, every method, and everybody who might come: nobody gets where they may not."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from django.db import connection, transaction

from tests.access.access_rules import (
    ADMINISTRATORS,
    ANYBODY,
    DOORS,
    MEMBERS,
    OPENAI,
    OWNERS,
    SELF_OR_OWNERS,
    USERS,
    WRITERS,
    Door,
)
from tests.access.routes import Route, admin_routes, routes
from tests.access.world import signed_in, token_of

pytestmark = pytest.mark.django_db

ROUTES = routes()
ROLES = {
    MEMBERS: {"viewer", "editor", "owner"},
    WRITERS: {"editor", "owner"},
    OWNERS: {"owner"},
    # The member of the world is the viewer.
    SELF_OR_OWNERS: {"viewer", "owner"},
    ADMINISTRATORS: set(),
}
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
# Tables in which a visit leaves its trace.
TRACES = {"django_session", "projects_token", "usersessions_usersession", "projects_cache"}


def named(route: Route) -> str:
    return route.name


def is_of_a_project(route: Route) -> bool:
    allowed = DOORS[route.name].methods.values() if route.name in DOORS else ()
    return bool({*allowed} - {ANYBODY, USERS})


# What is not listed fails the first test, and has no place in the others.
OF_A_PROJECT = [route for route in ROUTES if is_of_a_project(route)]
of_a_project = pytest.mark.parametrize("route", OF_A_PROJECT, ids=named)


@contextmanager
def nothing_is_written() -> Iterator[None]:
    written = []

    def watch(execute, sql, params, many, context):
        match = re.match(r'\s*(?:INSERT INTO|UPDATE|DELETE FROM) "(\w+)"', sql)
        if match and match[1] not in TRACES:
            written.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield
    assert written == []


def ask(client, route: Route, door: Door, method: str, path: str):
    """The answer, of which nothing stays."""
    if route.is_api:
        body, kind = json.dumps(door.sent), "application/json"
    else:
        body, kind = urlencode(door.sent), "application/x-www-form-urlencoded"
    with transaction.atomic():
        answer = client.generic(method, path, body, kind)
        transaction.set_rollback(True)
    return answer


def test_every_route_is_listed():
    assert sorted(route.name for route in ROUTES) == sorted(DOORS)


def test_the_pages_without_sign_in_are_those_for_anybody():
    pages = {route.name: route.view for route in ROUTES if not route.is_api}
    open_pages = {name for name in pages if not getattr(pages[name], "login_required", True)}
    allowed = {name for name, door in DOORS.items() if ANYBODY in door.methods.values()}
    assert open_pages == allowed & pages.keys()


@pytest.mark.parametrize("route", [route for route in ROUTES if route.methods], ids=named)
def test_a_route_is_listed_with_its_methods(route):
    if route.is_api and route.name in DOORS:
        assert set(DOORS[route.name].methods) == route.methods


@of_a_project
def test_an_unknown_visitor_is_asked_to_authenticate(route, world):
    door = DOORS[route.name]
    path = world.address(route, door.values)
    for visitor, client in world.unknown(route.is_api).items():
        for method in door.methods:
            with nothing_is_written():
                answer = ask(client, route, door, method, path)
            if route.is_api:
                assert answer.status_code == 401, (visitor, method)
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            else:
                assert answer.status_code == 302, (visitor, method)
                assert answer.headers["Location"].startswith("/accounts/login/?next=")


@of_a_project
def test_an_outsider_gets_404(route, world):
    door = DOORS[route.name]
    path = world.address(route, door.values)
    for outsider, client in world.outsiders(route.is_api).items():
        for method in door.methods:
            with nothing_is_written():
                answer = ask(client, route, door, method, path)
            assert answer.status_code == 404, (outsider, method)
            if route.is_api:
                error_key = "error" if route.name in OPENAI else "detail"
                assert list(answer.json()) == [error_key], (outsider, method)


@of_a_project
def test_members_do_what_their_role_allows(route, world):
    door = DOORS[route.name]
    path = world.address(route, door.values)
    for role, client in world.members(route.is_api).items():
        for method, username in door.methods.items():
            if role not in ROLES[username]:
                with nothing_is_written():
                    answer = ask(client, route, door, method, path)
                assert answer.status_code in (403, 404), (role, method)
            elif not door.streams:
                answer = ask(client, route, door, method, path)
                assert answer.status_code < 500, (role, method)
                assert answer.status_code not in (401, 403, 404, 405), (role, method)


@of_a_project
def test_other_methods_are_refused(route, world):
    door = DOORS[route.name]
    path = world.address(route, door.values)
    client = token_of(world.owner) if route.is_api else signed_in(world.owner)
    for method in METHODS - {*door.methods}:
        with nothing_is_written():
            answer = ask(client, route, door, method, path)
        assert answer.status_code == (302 if method in door.shut else 405), method


@pytest.mark.parametrize("route", [route for route in OF_A_PROJECT if not route.is_api], ids=named)
def test_no_other_site_acts_for_its_reader(route, world):
    door = DOORS[route.name]
    path = world.address(route, door.values)
    client = signed_in(world.owner, enforce_csrf_checks=True)
    for method in {*door.methods} - {"GET", *door.shut}:
        with nothing_is_written():
            assert ask(client, route, door, method, path).status_code == 403, method


@pytest.mark.parametrize("route", [route for route in OF_A_PROJECT if route.is_api], ids=named)
def test_a_token_does_what_its_scopes_allow(route, world):
    door = DOORS[route.name]
    path = world.address(route, door.values)
    reader = token_of(world.owner, scopes=["read"])
    writer = token_of(world.owner, scopes=["write"])
    for method in door.methods:
        barred = writer if method == "GET" else reader
        with nothing_is_written():
            assert ask(barred, route, door, method, path).status_code == 403, method


def test_the_admin_shows_nothing_to_who_is_not_staff(world):
    client = signed_in(world.owner)
    for route in admin_routes():
        path = "/" + re.sub(r"<\w+:\w+>|<\w+>|\(\?P.*", "1", route.pattern)
        with nothing_is_written():
            answer = client.get(path)
        if answer.status_code != 404:
            page = answer.headers.get("Location", path)
            assert page.startswith(("/admin/login/", "/accounts/login/")), path
