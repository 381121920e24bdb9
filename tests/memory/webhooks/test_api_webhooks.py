"""/api/v1/projects/…/webhooks/: for owners, with a token that may."""

import pytest

from memory import webhooks
from memory.models import Delivery, Webhook
from memory.webhooks import secret_of
from tests.addresses import NEVER_CONNECTED, REBINDING_URLS

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/webhooks/"
WISH = {"url": "https://good.example.org/hook", "events": ["message.posted", "entry.written"]}


def webhook_url(webhook, more: str = "") -> str:
    return f"{URL}{webhook.pk}/{more}"


def test_an_owner_registers_one_and_sees_its_secret_once(api, owner, project, connector):
    client = api(owner)
    answer = client.post(URL, WISH, format="json")
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    payload = answer.json()
    webhook = Webhook.objects.get()
    assert payload["secret"] == secret_of(webhook)
    assert (payload["url"], payload["events"]) == (WISH["url"], ["entry.written", "message.posted"])
    assert (payload["is_on"], webhook.created_by) == (True, owner)
    assert connector.connections == []
    for path in (URL, webhook_url(webhook), webhook_url(webhook, "deliveries/")):
        response = client.get(path)
        assert response.status_code == 200
        assert "secret" not in response.json()
        assert payload["secret"].removeprefix("whsec_") not in response.content.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"url": ""},
        {"url": None},
        {"url": "https://good.example.org/\x00"},
        {"events": []},
        {"events": ["everything"]},
        {"events": ["webhook.test"]},
        {"events": "message.posted"},
        {"is_on": "perhaps"},
    ],
)
def test_an_invalid_webhook_is_refused_by_field(api, owner, project, connector, change):
    answer = api(owner).post(URL, WISH | change, format="json")
    assert answer.status_code == 400
    assert set(answer.json()) == set(change)


def test_an_address_that_leads_inside_is_refused(api, owner, project, connector):
    client = api(owner)
    for url in NEVER_CONNECTED:
        answer = client.post(URL, WISH | {"url": url}, format="json")
        assert (answer.status_code, list(answer.json())) == (400, ["url"]), url
    assert not Webhook.objects.exists()
    assert connector.connections == []


def test_it_is_refused_at_delivery_too(project, owner, connector, work):
    """Whatever let it pass at registration, or it changed since."""
    for url in [*NEVER_CONNECTED, *REBINDING_URLS]:
        if url in REBINDING_URLS:
            webhooks.check_url(url)
        webhook = Webhook.objects.create(project=project, url=url, events=[], created_by=owner)
        sent = Delivery.objects.create(project=project, webhook=webhook, event="webhook.test")
        work()
        sent.refresh_from_db()
        assert (sent.attempts, sent.status_code, sent.state) == (1, None, "given_up"), url
        assert sent.error, url
        assert connector.connections == [], url


def test_the_guard_is_what_keeps_them_out(project, owner, connector, work, monkeypatch):
    """So that the tests above can fail: without it the connector sees the connections."""
    import httpcore2

    from projects.core import outbound_http

    monkeypatch.setattr(
        outbound_http, "PublicAddressBackend", lambda _deadline: httpcore2.SyncBackend()
    )
    for url in [*NEVER_CONNECTED, *REBINDING_URLS]:
        webhook = Webhook.objects.create(project=project, url=url, events=[])
        Delivery.objects.create(project=project, webhook=webhook, event="webhook.test")
    work()
    assert len(connector.connections) > 150


def test_a_changed_address_is_checked_as_well(api, owner, webhook, connector):
    answer = api(owner).patch(webhook_url(webhook), {"url": "http://10.0.0.1/"}, format="json")
    assert answer.json() == {"url": ["This address is not on the public internet."]}
    assert connector.connections == []


def test_an_owner_changes_one_and_deletes_it(api, owner, webhook, connector):
    client = api(owner)
    payload = client.patch(webhook_url(webhook), {"events": ["import.done"]}, format="json").json()
    assert payload["events"] == ["import.done"]
    payload = client.patch(webhook_url(webhook), {"url": WISH["url"]}, format="json").json()
    assert (payload["url"], payload["events"]) == (WISH["url"], ["import.done"])
    assert client.delete(webhook_url(webhook)).status_code == 204
    assert client.get(webhook_url(webhook)).status_code == 404


def test_an_owner_switches_one_off_and_on(api, owner, webhook):
    client = api(owner)
    payload = client.patch(webhook_url(webhook), {"is_on": False}, format="json").json()
    assert (payload["is_on"], payload["off_because"]) == (False, "owner")
    assert client.post(webhook_url(webhook, "test/")).json() == {
        "detail": "Turn the webhook on first."
    }
    payload = client.patch(webhook_url(webhook), {"is_on": True}, format="json").json()
    assert (payload["is_on"], payload["off_because"], payload["off_since"]) == (True, "", None)


def test_another_secret_takes_the_place_of_the_first(api, owner, webhook):
    before = secret_of(webhook)
    answer = api(owner).post(webhook_url(webhook, "secret/"))
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    webhook.refresh_from_db()
    assert answer.json()["secret"] == secret_of(webhook) != before
    assert answer.json()["previous_until"]


def test_a_test_is_listed_with_what_came_of_it(api, owner, webhook, inside, work):
    client = api(owner)
    answer = client.post(webhook_url(webhook, "test/"))
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    assert answer.json()["next_try_at"] == answer.json()["created_at"]
    work()
    [listed] = client.get(webhook_url(webhook, "deliveries/")).json()["results"]
    assert listed["id"] == answer.json()["id"] == inside.requests[0].headers["webhook-id"]
    assert (listed["event"], listed["state"], listed["status_code"]) == (
        "webhook.test",
        "delivered",
        200,
    )


def test_deliveries_are_filtered_and_paged(api, owner, webhook, project):
    for number in range(5):
        state = "given_up" if number % 2 else "delivered"
        Delivery.objects.create(project=project, webhook=webhook, event="import.done", state=state)
    client = api(owner)
    path = webhook_url(webhook, "deliveries/")
    assert len(client.get(path, {"state": "given_up"}).json()["results"]) == 2
    assert len(client.get(path, {"event": "message.posted"}).json()["results"]) == 0
    page = client.get(path, {"page_size": 2}).json()
    assert len(page["results"]) == 2 and page["next"]


def test_lists_take_the_same_queries_for_many(api, owner, webhook, project, inside):
    client = api(owner)
    for number in range(10):
        webhooks.register(project, f"{inside.url}/{number}", ["import.done"], owner)
        Delivery.objects.create(project=project, webhook=webhook, event="import.done")
    for path in (URL, webhook_url(webhook, "deliveries/")):
        client.get(path)
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as queries:
            assert len(client.get(path).json()["results"]) >= 10
        assert len(queries) <= 4


def test_a_project_takes_only_so_many(api, owner, project, inside, connector):
    for number in range(webhooks.MAX_WEBHOOKS):
        webhooks.register(project, f"{inside.url}/{number}", ["import.done"], owner)
    answer = api(owner).post(URL, WISH, format="json")
    assert answer.status_code == 400
    assert answer.json() == {"detail": "A project can have at most 20 webhooks."}


ROUTES = [
    ("get", "", None),
    ("post", "", WISH),
    ("get", "ID/", None),
    ("patch", "ID/", {"events": ["import.done"]}),
    ("delete", "ID/", None),
    ("post", "ID/secret/", None),
    ("post", "ID/test/", None),
    ("get", "ID/deliveries/", None),
]


@pytest.mark.parametrize("username", ["stranger", "viewer", "editor"])
@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_everybody_but_an_owner_gets_404(
    api, request, webhook, connector, username, method, path, body
):
    client = api(request.getfixturevalue(username))
    url = URL + path.replace("ID", str(webhook.pk))
    assert getattr(client, method)(url, body, format="json").status_code == 404
    assert connector.connections == []
    assert Webhook.objects.count() == 1


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_a_token_for_less_does_less(api, owner, webhook, connector, method, path, body):
    url = URL + path.replace("ID", str(webhook.pk))
    for scopes in (["read"], ["read", "write"]):
        answer = getattr(api(owner, scopes=scopes), method)(url, body, format="json")
        assert answer.status_code == 403


def test_a_webhook_is_not_reached_through_another_project(api, owner, webhook):
    from projects.services import create_project

    create_project(owner, name="Support", slug="support")
    path = webhook_url(webhook).replace("billing", "support")
    assert api(owner).get(path).status_code == 404
    assert api(owner).post(f"{path}test/").status_code == 404
