"""Delivery workers die at any instant: each event is delivered at least once, unchanged."""

import time
from collections import Counter
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.contrib.auth import get_user_model
from django.db.models import F
from django.db.models.functions import Now
from standardwebhooks.webhooks import Webhook as Standard

from chat.conversations.messages import post_message
from chat.models import Session, Visibility
from memory import webhooks
from memory.models import Delivery, Webhook
from memory.webhooks import secret_of
from projects.services import create_project
from tests.receiver import Received, Reply
from tests.torture import deliverers
from tests.torture.test_memory_kills import wait_until_ended

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def asleep(monkeypatch) -> None:
    """No message of a broker wakes anybody: the sweep finds all there is."""
    monkeypatch.setattr("memory.tasks.run_deliveries.apply_async", lambda **_: None)


def test_deliveries_survive_their_workers(crew, chance, scale, tally, receiver, settings):
    settings.OUTBOUND_ALLOW = [ip_network("127.0.0.1")]
    user = get_user_model().objects.create_user("olive")
    project = create_project(user, name="Billing")
    session = Session.objects.create(project=project, creator=user, visibility=Visibility.PROJECT)
    hook = Webhook.objects.create(
        project=project, url=f"{receiver.url}/hook", events=["message.posted"]
    )

    def moody(received: Received) -> Reply:
        """Slow sometimes, and at fault sometimes."""
        Standard(secret_of(hook)).verify(received.body, received.headers)
        return Reply(chance.choice([200] * 9 + [500]), delay=chance.choice([0, 0, 0.02, 0.1]))

    receiver.reply = moody
    message_count = kills = 0
    while kills < scale(200, 8):
        for _ in range(6):
            post_message(session, f"Message {message_count}", author=user)
            message_count += 1
        name, begun = f"deliverer-{chance.randrange(2**32)}", crew.Event()
        process = crew.Process(target=deliverers.deliver, args=(name, begun), name=name)
        process.start()
        assert begun.wait(60)
        time.sleep(chance.uniform(0, 0.4))
        process.kill()
        process.join(30)
        wait_until_ended(name)
        if process.exitcode != 0:
            kills += 1
            is_leased = Webhook.objects.filter(lease_until__gt=Now()).exists()
            tally("killed while one was delivered" if is_leased else "killed in between")
        time_passes()
    receiver.reply = Reply()
    while Delivery.objects.waiting().exists():
        deliver_due_webhooks()
        time_passes()
    check(receiver.requests, message_count, tally)


def deliver_due_webhooks() -> None:
    for webhook_id in webhooks.due():
        webhooks.deliver(webhook_id)


def time_passes() -> None:
    """As long as a lease takes to end, and waits to be over."""
    back = timedelta(hours=8)
    Webhook.objects.update(next_try_at=F("next_try_at") - back, lease_until=F("lease_until") - back)
    Delivery.objects.waiting().update(next_try_at=F("next_try_at") - back)


def check(requests: list[Received], message_count: int, tally) -> None:
    """Each event was received, under one id with one body, and the log tells the same."""
    bodies: dict[str, set[bytes]] = {}
    for request in requests:
        bodies.setdefault(request.headers["webhook-id"], set()).add(request.body)
    assert {len(some) for some in bodies.values()} == {1}
    states = Counter(Delivery.objects.values_list("state", flat=True))
    assert states == {"delivered": message_count}
    assert {str(pk) for pk in Delivery.objects.values_list("pk", flat=True)} == set(bodies)
    attempts = sum(Delivery.objects.values_list("attempts", flat=True))
    # What was killed before it was sent counts as an attempt; what was sent never is none.
    assert len(requests) <= attempts
    tally("events", message_count)
    tally("requests", len(requests))
