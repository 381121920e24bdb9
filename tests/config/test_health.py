"""/readyz tells of database, broker, worker, beat and queues."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from config import health, signs
from config.models import Heartbeat

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def broker(monkeypatch) -> None:
    monkeypatch.setattr(health, "_broker", lambda: True)


def test_it_is_ready_when_all_parts_were_seen(client):
    signs.note(["worker", "beat", signs.queue("chat"), signs.queue("io")])
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "database": True,
        "broker": True,
        "worker": True,
        "beat": True,
        "queues": {"chat": True, "memory": False, "index": False, "io": True},
    }


@pytest.mark.parametrize("part", ["worker", "beat"])
def test_it_is_not_while_a_part_is_silent(client, part):
    signs.note(["worker", "beat"])
    Heartbeat.objects.filter(part=part).update(seen_at=Now() - timedelta(minutes=2))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()[part] is False
    signs.note([part])
    assert client.get("/readyz").status_code == 200
