"""Webhook deliveries are signed, ordered, retried after errors, and given up in the end."""

import base64
import hashlib
import hmac
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.utils.http import http_date
from standardwebhooks.webhooks import Webhook as Standard
from standardwebhooks.webhooks import WebhookVerificationError

from chat.conversations.messages import post_message
from chat.models import Session, Visibility
from memory import tasks, webhooks
from memory.models import Delivery
from memory.webhook_events import send_test
from memory.webhooks import secret_of
from projects.models import Project
from tests.receiver import Reply

pytestmark = pytest.mark.django_db


@pytest.fixture
def say(project, editor):
    """Posts messages to a shared chat."""
    session = Session.objects.create(project=project, creator=editor, visibility=Visibility.PROJECT)
    return lambda text="Hello": post_message(session, text, author=editor)


def the_delivery() -> Delivery:
    return Delivery.objects.get()


def ids(received) -> list[str]:
    return [item.headers["webhook-id"] for item in received]


def test_it_is_signed_as_the_standard_says(webhook, inside, say, work):
    message = say("The cutover is on 3 March.")
    work()
    [received] = inside.requests
    assert (received.method, received.path) == ("POST", "/hook")
    assert received.headers["content-type"] == "application/json"
    verified = Standard(secret_of(webhook)).verify(received.body, received.headers)
    assert verified == {
        "type": "message.posted",
        "timestamp": the_delivery().created_at.isoformat().replace("+00:00", "Z"),
        "data": {
            "project": "billing",
            "session": str(message.session_id),
            "message": str(message.pk),
            "role": "user",
        },
    }
    with pytest.raises(WebhookVerificationError):
        Standard(secret_of(webhook)).verify(received.body + b" ", received.headers)
    late = datetime.now(UTC).timestamp() - 600
    with pytest.raises(WebhookVerificationError):
        old = received.headers | {"webhook-timestamp": str(int(late))}
        Standard(secret_of(webhook)).verify(received.body, old)


def test_the_signature_by_hand(webhook, inside, say, work):
    say()
    work()
    [received] = inside.requests
    head = [received.headers[f"webhook-{name}"] for name in ("id", "timestamp")]
    content = ".".join([*head, received.body.decode()]).encode()
    prefix, _, encoded = secret_of(webhook).partition("_")
    digest = hmac.new(base64.b64decode(encoded), content, hashlib.sha256).digest()
    assert prefix == "whsec"
    assert received.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_two_webhooks_have_two_secrets_and_neither_is_kept(webhook, project, owner, inside):
    other = webhooks.register(project, f"{inside.url}/other", ["import.done"], owner)
    assert secret_of(other) != secret_of(webhook)
    row = str(type(webhook).objects.filter(pk=webhook.pk).values().get())
    assert secret_of(webhook).removeprefix("whsec_") not in row


def test_for_a_while_both_secrets_sign(webhook, inside, say, work, pass_time):
    before = secret_of(webhook)
    webhooks.change_secret(webhook)
    after = secret_of(webhook)
    say()
    work()
    pass_time(hours=25)
    say()
    work()
    first, second = inside.requests
    for secret in (before, after):
        Standard(secret).verify(first.body, first.headers)
    Standard(after).verify(second.body, second.headers)
    with pytest.raises(WebhookVerificationError):
        Standard(before).verify(second.body, second.headers)


def test_only_the_last_two_secrets_sign(webhook, inside, say, work):
    secrets = [secret_of(webhook)]
    for _ in range(2):
        webhooks.change_secret(webhook)
        secrets.append(secret_of(webhook))
    say()
    work()
    [request] = inside.requests
    for secret in secrets[1:]:
        Standard(secret).verify(request.body, request.headers)
    with pytest.raises(WebhookVerificationError):
        Standard(secrets[0]).verify(request.body, request.headers)


def test_they_come_in_order_and_once(webhook, inside, say, work):
    messages = [say(str(number)) for number in range(20)]
    work()
    work()
    message_ids = [json.loads(request.body)["data"]["message"] for request in inside.requests]
    assert message_ids == [str(message.pk) for message in messages]
    assert not Delivery.objects.exclude(state="delivered", attempts=1, status_code=200).exists()


def test_the_log_says_how_it_went(webhook, inside, say, work):
    inside.reply = Reply(204, delay=0.05)
    say()
    work()
    delivery = the_delivery()
    assert (delivery.state, delivery.attempts, delivery.status_code) == ("delivered", 1, 204)
    assert 50 <= (delivery.latency_ms or 0) < 2_000
    assert (delivery.error, delivery.next_try_at) == ("", None)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 500, 503])
def test_it_is_tried_again_with_the_same_id_and_body(webhook, inside, say, work, pass_time, status):
    inside.reply = Reply(status, {"Location": "http://127.0.0.1:5432/"})
    say()
    work()
    work()
    assert len(inside.requests) == 1
    delivery = the_delivery()
    assert (delivery.state, delivery.status_code) == ("waiting", status)
    assert "redirect" in delivery.error if status < 400 else delivery.error
    pass_time(minutes=2)
    inside.reply = Reply()
    work()
    first, second = inside.requests
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    Standard(secret_of(webhook)).verify(second.body, second.headers)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.error) == ("delivered", 2, "")


def test_a_new_name_of_the_project_does_not_change_the_body(
    webhook, inside, say, work, pass_time, project
):
    inside.reply = Reply(500)
    say()
    work()
    Project.objects.filter(pk=project.pk).update(slug="accounts")
    inside.reply = Reply(200)
    pass_time(minutes=1)
    work()
    first, second = inside.requests
    assert first.body == second.body


def test_the_waits_grow_and_differ_and_make_about_a_day():
    for attempts, seconds in enumerate([30, 120, 480, 1_920, 7_680, 21_600, 21_600], 1):
        waits = {webhooks.retry_delay(attempts).total_seconds() for _ in range(200)}
        assert 0.8 * seconds <= min(waits) < 0.85 * seconds
        assert 1.15 * seconds < max(waits) <= 1.2 * seconds
    whole = sum(
        (webhooks.retry_delay(number) for number in range(1, webhooks.MAX_ATTEMPTS)),
        timedelta(),
    )
    assert timedelta(hours=20) < whole < timedelta(hours=34)


def test_after_ten_attempts_it_is_given_up(webhook, inside, say, work, pass_time):
    inside.reply = Reply(500)
    say()
    for _ in range(12):
        work()
        pass_time(hours=8)
    assert len(set(ids(inside.requests))) == 1
    assert len(inside.requests) == webhooks.MAX_ATTEMPTS
    last = the_delivery()
    assert (last.state, last.status_code, last.next_try_at) == ("given_up", 500, None)


def test_a_failing_receiver_does_not_hold_up_the_rest(webhook, inside, say, work, pass_time):
    poison = str(say("It cannot take this").pk)
    inside.reply = lambda received: Reply(500 if poison in received.body.decode() else 200)
    others = [str(say().pk) for _ in range(3)]
    work()
    pass_time(minutes=1)
    work()
    delivered = Delivery.objects.filter(state="delivered").order_by("id")
    assert [item.data["message"] for item in delivered] == others
    assert Delivery.objects.get(data__message=poison).state == "waiting"


def test_a_receiver_that_fails_is_left_alone(webhook, inside, say, work, pass_time):
    inside.reply = Reply(500)
    for _ in range(5):
        say()
        work()
    assert len(inside.requests) == 1
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.last_error) == (1, "The server responded with an error.")
    assert webhook.failing_since is not None
    pass_time(seconds=40)
    work()
    assert len(inside.requests) == 2
    pass_time(seconds=40)
    work()
    assert len(inside.requests) == 2
    inside.reply = Reply()
    pass_time(hours=1)
    work()
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.last_error, webhook.failing_since) == (0, "", None)
    assert Delivery.objects.filter(state="delivered").count() == 5


def test_one_that_recovered_is_left_alone_for_as_short_as_at_first(
    webhook, inside, say, work, pass_time
):
    inside.reply = Reply(500)
    say()
    for _ in range(5):
        work()
        pass_time(hours=7)
    answers = iter([Reply(), Reply(500)])
    inside.reply = lambda _received: next(answers)
    say()
    work()
    webhook.refresh_from_db()
    assert webhook.failures == 1


def test_one_that_is_deleted_meanwhile_harms_nothing(webhook, inside, say, work):
    real = webhooks._send
    say()

    def send_and_delete(*value):
        outcome = real(*value)
        type(webhook).objects.all().delete()
        return outcome

    inside.reply = Reply(410)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webhooks, "_send", send_and_delete)
        work()
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("is_date", [False, True], ids=["seconds", "date"])
def test_one_that_asks_for_patience_gets_it(webhook, inside, say, work, pass_time, is_date):
    wait = http_date(time.time() + 3605) if is_date else "3600"
    inside.reply = Reply(429, {"Retry-After": wait})
    say()
    work()
    pass_time(minutes=59)
    work()
    assert len(inside.requests) == 1
    pass_time(minutes=15)
    work()
    assert len(inside.requests) == 2


def test_one_that_fails_for_days_is_switched_off(webhook, inside, say, work, pass_time):
    inside.reply = Reply(500)
    for _ in range(3):
        say()
        work()
        pass_time(days=1)
    say()
    assert Delivery.objects.waiting().count() == 4
    work()
    webhook.refresh_from_db()
    assert (webhook.off_because, webhook.is_on) == ("failing", False)
    assert not Delivery.objects.waiting().exists()
    say()
    assert Delivery.objects.count() == 4


def test_one_that_is_gone_is_switched_off_at_once(webhook, inside, say, work):
    inside.reply = Reply(410)
    say()
    work()
    webhook.refresh_from_db()
    assert webhook.off_because == "gone"
    assert the_delivery().state == "given_up"


def test_one_that_is_switched_on_again_starts_afresh(webhook, inside, say, work, pass_time):
    inside.reply = Reply(500)
    say()
    work()
    pass_time(days=4)
    work()
    webhook.refresh_from_db()
    webhooks.switch_on(webhook, webhook.created_by)
    inside.reply = Reply()
    say()
    work()
    webhook.refresh_from_db()
    assert (webhook.off_because, webhook.failing_since, webhook.failures) == ("", None, 0)
    assert Delivery.objects.filter(state="delivered").count() == 1


def test_late_deliveries_are_given_up_and_the_log_is_cleared(webhook, inside, say):
    def pass_time(**span: float) -> None:
        Delivery.objects.update(created_at=F("created_at") - timedelta(**span))

    say()
    pass_time(hours=29)
    tasks.clear_deliveries()
    assert the_delivery().state == "waiting"
    pass_time(hours=2)
    tasks.clear_deliveries()
    assert (the_delivery().state, the_delivery().attempts) == ("given_up", 0)
    pass_time(days=28)
    tasks.clear_deliveries()
    assert the_delivery().state == "given_up"
    pass_time(days=2)
    tasks.clear_deliveries()
    assert not Delivery.objects.exists()


def test_a_killed_worker_s_delivery_comes_with_the_next(
    webhook, inside, say, work, monkeypatch, pass_time
):
    """Killed after the request, before anything came of it was noted."""

    class Killed(BaseException):
        pass

    real = webhooks._send

    def send_and_die(*value):
        real(*value)
        raise Killed

    say()
    monkeypatch.setattr(webhooks, "_send", send_and_die)
    with pytest.raises(Killed):
        webhooks.deliver(webhook.pk)
    monkeypatch.setattr(webhooks, "_send", real)
    work()
    assert len(inside.requests) == 1
    pass_time(seconds=61)
    work()
    first, second = inside.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert (the_delivery().state, the_delivery().attempts) == ("delivered", 2)


def test_a_lost_message_is_found_by_the_sweep(webhook, inside, say, monkeypatch):
    """Nobody was woken; the beat's own look finds it."""
    say()
    monkeypatch.setattr(tasks.deliver, "apply_async", lambda args, **_: tasks.deliver(*args))
    tasks.run_deliveries()
    tasks.run_deliveries()
    assert len(inside.requests) == 1


def test_a_worker_leaves_to_another_what_it_has_no_time_for(webhook, inside, say, sent):
    for _ in range(3):
        say()
    assert webhooks.deliver(webhook.pk, budget_s=0) is False
    assert webhooks.deliver(webhook.pk) is True
    assert len(inside.requests) == 3


def test_two_workers_do_not_send_the_same(webhook, inside, say):
    say()
    assert webhooks._claim(webhook.pk) is not None
    assert webhooks._claim(webhook.pk) is None
    assert webhooks.deliver(webhook.pk) is True
    assert inside.requests == []


def test_an_overtaken_sender_sends_nothing(webhook, inside, say, pass_time):
    say()
    slow = webhooks._claim(webhook.pk)
    pass_time(seconds=61)
    assert webhooks._claim(webhook.pk) is not None
    assert webhooks._deliver_next(slow) is False
    assert inside.requests == []


def test_a_test_is_sent_once_though_the_receiver_just_failed(webhook, inside, say, work):
    inside.reply = Reply(500)
    say()
    work()
    send_test(webhook)
    work()
    assert [json.loads(request.body)["type"] for request in inside.requests] == [
        "message.posted",
        "webhook.test",
    ]
    tested = Delivery.objects.get(event="webhook.test")
    assert (tested.state, tested.status_code) == ("given_up", 500)


def test_an_address_that_leads_inside_by_now_is_not_sent_to(
    webhook, inside, say, work, settings, connector
):
    settings.OUTBOUND_ALLOW = []
    say()
    work()
    assert connector.connections == []
    delivery = the_delivery()
    assert (delivery.state, delivery.status_code) == ("waiting", None)
    assert delivery.error == "This address is not on the public internet."


def test_a_receiver_that_hangs_is_not_waited_for(webhook, inside, say, work, monkeypatch):
    from projects.core import outbound_http

    real = outbound_http.request
    monkeypatch.setattr(
        webhooks.outbound_http, "request", lambda *value, **kw: real(*value, seconds=0.2, **kw)
    )
    inside.reply = Reply(delay=1)
    say()
    work()
    assert the_delivery().error == "The server took too long to respond."


def test_nothing_of_the_answer_is_kept(webhook, inside, say, work):
    inside.reply = Reply(500, {"X-Word": "Holunder"}, b"Holunder")
    say()
    work()
    rows = [*Delivery.objects.values(), *type(webhook).objects.values()]
    assert "Holunder" not in str(rows)
