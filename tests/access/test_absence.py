"""A hidden object answers exactly like a missing one: same body, headers and queries."""

import re
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.conversations.messages import post_message
from chat.models import Session, Visibility
from projects.core.models import new_id
from tests.access.access_rules import DOORS
from tests.access.test_endpoints import OF_A_PROJECT, ask, named
from tests.access.world import KEYS, NAMED_BEFORE, World, signed_in, token_of

pytestmark = pytest.mark.django_db

# Headers that differ from request to request.
CHANGING = {"X-Request-ID", "Content-Security-Policy"}


# In a page: the token against forgery, and the nonce of its scripts.
NEW_IN_EACH = re.compile(rb'(csrfmiddlewaretoken" value|nonce|X-CSRFToken)[^>]*')


# OpenAI's error names the model that was asked for.
ECHOED = ("`billing`", "`nothing`")


def missing_world(world: World) -> World:
    """The same names for things that do not exist."""
    absent = SimpleNamespace(**vars(world))
    for name in {*NAMED_BEFORE.values(), "deleted_session", "reply"}:
        if name in vars(world):
            key = KEYS.get(name, "pk")
            value = "nothing" if key in ("slug", "name", "username") else new_id()
            setattr(absent, name, SimpleNamespace(**{key: value}))
    absent.address = World.address.__get__(absent)
    return absent


def outcome(client, route, door, method: str, path: str) -> dict[str, object]:
    with CaptureQueriesContext(connection) as queries:
        answer = ask(client, route, door, method, path)
    headers = {name: value for name, value in answer.headers.items() if name not in CHANGING}
    body = NEW_IN_EACH.sub(b"", answer.content)
    for name in (path, *ECHOED):
        body = body.replace(name.encode(), b"")
    if len(body) < len(answer.content):
        del headers["Content-Length"]
    return headers | {"status": answer.status_code, "body": body, "queries": len(queries)}


def differences(present: dict[str, object], missing: dict[str, object]) -> dict[str, tuple]:
    names = present.keys() | missing.keys()
    pairs = {name: (present.get(name), missing.get(name)) for name in sorted(names)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("route", OF_A_PROJECT, ids=named)
def test_an_outsider_cannot_tell_what_exists(route, world):
    door = DOORS[route.name]
    path, absent = world.address(route, door.values), missing_world(world)
    elsewhere = absent.address(route, door.values)
    for outsider, client in world.outsiders(route.is_api).items():
        for method in door.methods:
            # The first request of a client notes that its session or token is used.
            outcome(client, route, door, method, elsewhere)
            present = outcome(client, route, door, method, path)
            missing = outcome(client, route, door, method, elsewhere)
            assert differences(present, missing) == {}, (outsider, method)


def test_a_member_cannot_tell_that_a_private_chat_of_another_exists(world):
    private = Session.objects.create(
        project=world.project, creator=world.editor, visibility=Visibility.PRIVATE
    )
    secret = post_message(private, "The salary is 93,500.", author=world.editor)
    reply = post_message(private, "It is high.", role="assistant")
    existing, absent = SimpleNamespace(**vars(world)), missing_world(world)
    existing.session, existing.question, existing.reply = private, secret, reply
    existing.file = world.add_pdf(world.editor, private)
    existing.deleted_session = Session.objects.create(
        project=world.project,
        creator=world.editor,
        visibility=Visibility.PRIVATE,
        deleted_at=timezone.now(),
    )
    existing.address = World.address.__get__(existing)
    compared = 0
    for route in OF_A_PROJECT:
        door = DOORS[route.name]
        needed = set(re.findall(r"/(sessions|chats|messages|files)/<", f"/{route.pattern}"))
        if not needed:
            continue
        absent.project = world.project
        path, elsewhere = existing.address(route, door.values), absent.address(route, door.values)
        client = token_of(world.owner) if route.is_api else signed_in(world.owner)
        for method in door.methods:
            outcome(client, route, door, method, elsewhere)
            present = outcome(client, route, door, method, path)
            missing = outcome(client, route, door, method, elsewhere)
            assert present["status"] == 404, (route.name, method)
            assert differences(present, missing) == {}, (route.name, method)
            compared += 1
    assert compared > 20
