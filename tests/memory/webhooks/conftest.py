"""A project with a receiver on this machine, which may be reached, and a worker at hand."""

from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.db.models import F

from tests.receiver import Receiver

EVENTS = [
    "entry.rolled_up",
    "entry.written",
    "fact.changed",
    "import.done",
    "memory.forgotten",
    "memory.proposed",
    "message.deleted",
    "message.edited",
    "message.posted",
    "reply.finished",
    "session.closed",
]


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[str]:
    """The names of the tasks about webhooks that the broker was given."""
    from memory import tasks

    names: list[str] = []
    for task in (tasks.run_deliveries, tasks.deliver):
        monkeypatch.setattr(
            task, "apply_async", lambda *_, name=task.name, **__: names.append(name)
        )
    return names


@pytest.fixture
def inside(settings, receiver) -> Receiver:
    settings.OUTBOUND_ALLOW = [ip_network("127.0.0.1")]
    return receiver


@pytest.fixture
def webhook(project, owner, inside):
    """One that listens to everything."""
    from memory import webhooks

    return webhooks.register(project, f"{inside.url}/hook", EVENTS, owner)


@pytest.fixture
def work() -> Callable[[], None]:
    """Does what workers do until nothing is due."""
    from memory import webhooks

    def run() -> None:
        for webhook_id in webhooks.due():
            assert webhooks.deliver(webhook_id)

    return run


@pytest.fixture
def pass_time(db) -> Callable[..., None]:
    """Moves all that is timed into the past, by what a timedelta takes."""
    from memory.models import Delivery, Webhook

    def move(**span: float) -> None:
        back = timedelta(**span)
        for model, names in (
            (Delivery, ("next_try_at", "tried_at")),
            (Webhook, ("next_try_at", "failing_since", "lease_until", "previous_until")),
        ):
            model.objects.update(**{name: F(name) - back for name in names})

    return move
