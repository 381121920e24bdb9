"""The pages of webhooks, which work without a script."""

import re

import pytest

from memory import webhooks
from memory.models import Delivery, Webhook
from memory.webhooks import secret_of

pytestmark = pytest.mark.django_db

URL = "/projects/billing/settings/webhooks/"
WISH = {"url": "https://good.example.org/hook", "events": ["message.posted", "entry.written"]}


@pytest.fixture
def as_owner(client, owner):
    client.force_login(owner)
    return client


def webhook_url(webhook) -> str:
    return f"{URL}{webhook.pk}/"


def test_the_settings_lead_there(as_owner, project):
    assert URL in as_owner.get("/projects/billing/settings/").content.decode()


def test_an_owner_registers_one_and_sees_its_secret_once(as_owner, project, connector):
    answer = as_owner.post(URL, WISH)
    webhook = Webhook.objects.get()
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert secret_of(webhook) in answer.content.decode()
    assert (webhook.url, webhook.events) == (WISH["url"], ["entry.written", "message.posted"])
    for path in (URL, webhook_url(webhook), "/projects/billing/settings/"):
        assert "whsec_" not in as_owner.get(path).content.decode()


def test_a_refused_form_keeps_its_text_and_shows_why(as_owner, project, connector):
    answer = as_owner.post(URL, WISH | {"url": "http://localhost/hook"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "This address is not on the public internet." in text
    assert 'value="http://localhost/hook"' in text
    assert len(re.findall(r"<input[^>]*checked", text)) == 2
    assert as_owner.post(URL, {"url": WISH["url"]}).status_code == 400
    assert not Webhook.objects.exists()


def test_in_german(as_owner, project, connector):
    answer = as_owner.post(
        URL, WISH | {"url": "http://localhost/hook"}, headers={"Accept-Language": "de"}
    )
    assert "Diese Adresse liegt nicht im öffentlichen Internet." in answer.content.decode()


def test_each_button_does_what_it_says(as_owner, webhook, inside, work, connector):
    connector.receivers.add(inside.address)
    page = webhook_url(webhook)

    def press(action: str, **fields):
        return as_owner.post(page, {"action": action, **fields}, follow=True)

    assert "A test was sent" in press("test").content.decode()
    work()
    text = as_owner.get(page).content.decode()
    assert "webhook.test" in text and "Delivered" in text and "200" in text
    before = secret_of(webhook)
    text = press("secret").content.decode()
    webhook.refresh_from_db()
    assert secret_of(webhook) in text and before not in text
    text = press("off").content.decode()
    assert "An owner turned it off." in text
    assert "Turn the webhook on first." in press("test").content.decode()
    assert "An owner turned it off." not in press("on").content.decode()
    press("change", url=WISH["url"], events=["import.done"])
    webhook.refresh_from_db()
    assert (webhook.url, webhook.events) == (WISH["url"], ["import.done"])
    assert press("change", url="http://10.0.0.1/", events=["import.done"]).status_code == 400
    assert press("nonsense").status_code == 404
    assert "The webhook to" in press("delete").content.decode()
    assert not Webhook.objects.exists()


def test_owners_see_that_one_fails_or_was_switched_off(as_owner, webhook, project):
    Webhook.objects.update(
        failing_since="2026-03-01T09:00Z",
        last_error="The connection failed.",
        next_try_at="2026-03-01T10:00Z",
    )
    for path in (URL, webhook_url(webhook), "/projects/billing/settings/"):
        text = as_owner.get(path).content.decode()
        assert "Failing since" in text and "The connection failed." in text and "Next try" in text
    webhooks.switch_off(webhook, "failing")
    for path in (URL, webhook_url(webhook), "/projects/billing/settings/"):
        assert "No delivery succeeded for three days." in as_owner.get(path).content.decode()


@pytest.mark.parametrize("username", ["stranger", "viewer", "editor"])
def test_everybody_but_an_owner_gets_404(client, request, webhook, connector, username):
    client.force_login(request.getfixturevalue(username))
    for path in (URL, webhook_url(webhook)):
        assert client.get(path).status_code == 404
        assert client.post(path, WISH | {"action": "delete"}).status_code == 404
    if username != "stranger":
        assert URL not in client.get("/projects/billing/settings/").content.decode()
    assert Webhook.objects.count() == 1


def test_an_anonymous_user_is_asked_to_sign_in(client, webhook):
    assert client.get(webhook_url(webhook)).status_code == 302


def test_the_path_of_an_address_is_shown_to_nobody(as_owner, webhook, admin_client):
    Webhook.objects.update(url="https://good.example.org/services/T0/secret-path?key=secret")
    assert "secret-path" not in as_owner.get(URL).content.decode()
    for page in ("", f"{webhook.pk}/change/"):
        text = admin_client.get(f"/admin/memory/webhook/{page}").content.decode()
        assert "secret-path" not in text
        assert webhook.salt not in text


def test_staff_switch_one_off(admin_client, webhook, as_owner, project):
    wish = {"action": "switch_off", "_selected_action": [webhook.pk]}
    admin_client.post("/admin/memory/webhook/", wish)
    webhook.refresh_from_db()
    assert webhook.off_because == "staff"


def test_the_page_takes_the_same_queries_for_many(
    as_owner, webhook, project, django_assert_num_queries
):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    Delivery.objects.create(project=project, webhook=webhook, event="import.done")
    as_owner.get(webhook_url(webhook))
    with CaptureQueriesContext(connection) as few:
        as_owner.get(webhook_url(webhook))
    for _ in range(20):
        Delivery.objects.create(project=project, webhook=webhook, event="import.done")
    with django_assert_num_queries(len(few)):
        as_owner.get(webhook_url(webhook))
