"""How often pages are requested, and how many streams are open: 429, and when to try again."""

import asyncio

import pytest
from django.test import Client

from chat.models import Session
from chat.streaming.poller import (
    StreamGrant,
    TooManyStreamsError,
    get_poller,
    require_free_stream,
)
from projects.models import Bucket

pytestmark = pytest.mark.django_db

PAGE = {"Accept": "text/html"}


@pytest.fixture
def slow(settings) -> None:
    settings.PAGE_RATE = (3, 60)


def test_a_user_gets_a_page_that_says_so(client, owner, stranger, project, slow):
    client.force_login(owner)
    answers = [client.get("/projects/billing/settings/", headers=PAGE) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 20
    assert "Too many requests" in answers[-1].content.decode()
    # Others are not affected, nor is another browser of the same user exempt.
    other, second_client = Client(), Client()
    other.force_login(stranger)
    second_client.force_login(owner)
    assert other.get("/?all", headers=PAGE).status_code == 200
    assert second_client.get("/", headers=PAGE).status_code == 429


def test_a_form_and_a_script_are_counted_too(client, owner, project, slow):
    client.force_login(owner)
    for _ in range(3):
        client.post("/", {"name": ""})
    refused = client.get("/projects/billing/settings/", headers={"Accept": "*/*"})
    assert (refused.status_code, [*refused.json()]) == (429, ["detail"])


def test_an_address_is_counted_where_nobody_is_signed_in(client, db, slow):
    answers = [client.get("/accounts/login/", headers=PAGE).status_code for _ in range(4)]
    assert answers == [200, 200, 200, 429]
    elsewhere = client.get("/accounts/login/", headers=PAGE, REMOTE_ADDR="192.0.2.7")
    assert elsewhere.status_code == 200
    assert not any("127.0.0.1" in bucket.subject for bucket in Bucket.objects.all())


def test_addresses_of_one_ipv6_network_are_counted_together(client, db, slow):
    def status(address: str) -> int:
        return client.get("/accounts/login/", headers=PAGE, REMOTE_ADDR=address).status_code

    assert [status(f"2001:db8:0:1::{number}") for number in range(4)] == [200, 200, 200, 429]
    assert status("2001:db8:0:2::1") == 200
    assert [status(f"::ffff:192.0.2.{number}") for number in range(5)] == [200] * 5


def test_programs_and_monitoring_are_not_counted_as_pages(client, api, owner, project, slow):
    program = api(owner)
    assert {program.get("/api/v1/projects/").status_code for _ in range(5)} == {200}
    assert 429 not in {client.get("/healthz").status_code for _ in range(5)}


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner)


@pytest.mark.parametrize("of", ["user", "project"])
def test_streams_are_limited_until_one_ends(settings, owner, session, of):
    settings.STREAMS_PER_USER = 2 if of == "user" else 100
    settings.STREAMS_PER_PROJECT = 2 if of == "project" else 100
    grants = [StreamGrant(owner.pk, session.project_id, session.pk, name) for name in "ab"]

    async def open_both() -> None:
        poller = get_poller()
        with poller.checking(grants[0]):
            require_free_stream(grants[1])
            with poller.checking(grants[1]), pytest.raises(TooManyStreamsError):
                require_free_stream(grants[0])
            require_free_stream(grants[1])
        poller._task.cancel()

    asyncio.run(open_both())


def test_one_too_many_is_refused_by_page_and_api(client, api, settings, owner, session):
    from chat.conversations.messages import post_message

    settings.STREAMS_PER_USER = 0
    reply = post_message(session, "Soon.", role="assistant")
    client.force_login(owner)
    chat = f"/projects/billing/chats/{session.pk}/"
    events = {"Accept": "text/event-stream"}
    refused = [
        client.get(f"{chat}events/", headers=events),
        client.get(f"/messages/{reply.pk}/stream/", headers=events),
        api(owner).get(f"/api/v1/messages/{reply.pk}/stream/", headers=events),
    ]
    for answer in refused:
        assert answer.status_code == 429
        assert answer.headers["Retry-After"] == "30"
        assert "Too many tabs" in answer.json()["detail"]
