"""In an archived project every route reads, and no route writes."""

import pytest
from django.utils import timezone

from tests.access.access_rules import DOORS
from tests.access.test_endpoints import OF_A_PROJECT, ROLES, ask, named, nothing_is_written
from tests.access.world import signed_in, token_of

pytestmark = pytest.mark.django_db

# Owners unarchive and delete the project. The others concern the caller and not the project:
# members leave it, which tests/projects/test_api_members.py covers.
WRITABLE = {
    "project-archive",
    "project-delete",
    "api-project",
    "api-member",
    "api-token",
    "token-revoke",
    "api-received-invitation",
    "invitation-answer",
}


@pytest.fixture
def archived(world):
    world.project.archived_at = timezone.now()
    world.project.save(update_fields=["archived_at"])
    return world


def clients(world, to_api: bool):
    enter = token_of if to_api else signed_in
    return {role: enter(getattr(world, role)) for role in ("owner", "editor", "viewer")}


@pytest.mark.parametrize(
    "route", [route for route in OF_A_PROJECT if route.name not in WRITABLE], ids=named
)
def test_nobody_changes_an_archived_project(route, archived):
    door = DOORS[route.name]
    path = archived.address(route, door.values)
    for role, client in clients(archived, route.is_api).items():
        for method, allowed in door.methods.items():
            if method == "GET":
                continue
            with nothing_is_written():
                answer = ask(client, route, door, method, path)
            may = role in ROLES[allowed]
            assert answer.status_code in ({409} if may else {403, 404, 409}), (role, method)
            if may:
                assert b"archived and read-only" in answer.content, (role, method)


@pytest.mark.parametrize(
    "route",
    # An archived project is no model: tests/projects/test_archiving.py.
    [
        route
        for route in OF_A_PROJECT
        if "GET" in DOORS[route.name].methods and route.name != "v1-model"
    ],
    ids=named,
)
def test_members_read_an_archived_project_as_before(route, world):
    door = DOORS[route.name]
    if door.streams:
        return
    path = world.address(route, door.values)
    members = clients(world, route.is_api)
    before = {role: ask(client, route, door, "GET", path) for role, client in members.items()}
    world.project.archived_at = timezone.now()
    world.project.save(update_fields=["archived_at"])
    # The form of a change may also answer that nothing can change.
    is_form = "POST" in door.methods and not route.is_api
    for role, client in members.items():
        status = ask(client, route, door, "GET", path).status_code
        expected = before[role].status_code
        assert status == expected or (is_form and status == 409), (role, status, expected)
