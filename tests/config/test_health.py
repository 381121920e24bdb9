"""/readyz: what is missing, in words, and soon, whatever hangs."""

import json
import shutil
import time
from collections import namedtuple
from collections.abc import Iterator
from datetime import timedelta
from threading import Event
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections
from django.db.models.functions import Now
from django.test import RequestFactory

from config import health, signs
from config.models import Heartbeat
from config.probes import Probe
from tests.server import database_url

pytestmark = pytest.mark.django_db(transaction=True)
PARTS = ("database", "broker", "worker", "beat")


@pytest.fixture(autouse=True)
def broker_is_there(monkeypatch):
    monkeypatch.setattr(health, "_broker", Probe(dict))


def seen(**ages: int) -> None:
    for part, age in ages.items():
        Heartbeat.objects.create(part=part, seen_at=Now() - timedelta(seconds=age))


def ask() -> tuple[int, dict]:
    # Not through the client: its middleware would ask the database, too.
    answer = health.readyz(RequestFactory().get("/readyz"))
    return answer.status_code, json.loads(answer.content)


def test_all_is_there():
    seen(worker=5, beat=12)
    status, told = ask()
    assert (status, told["missing"], told["warnings"]) == (200, {}, {})
    assert {part: told[part] for part in PARTS} == dict.fromkeys(PARTS, True)
    assert 5 <= told["seen_seconds_ago"]["worker"] < 20


def test_who_is_silent_is_missing_and_told_for_how_long():
    seen(worker=130)
    status, told = ask()
    assert status == 503
    assert {part: told[part] for part in PARTS} == {
        "database": True,
        "broker": True,
        "worker": False,
        "beat": False,
    }
    assert told["missing"]["worker"].startswith("No sign of life for 13")
    assert told["missing"]["beat"] == "No sign of life yet."


def test_a_sign_of_life_from_the_future_is_from_before_the_clock_was_set_back():
    seen(worker=-7_200, beat=-5)
    status, told = ask()
    assert (status, told["worker"], told["beat"]) == (503, False, True)
    assert told["missing"]["worker"] == "No sign of life since the clock was set back."


def test_a_queue_that_nobody_takes_from_is_told_of():
    signs.note(["worker", "beat", signs.queue("chat"), signs.queue("io")])
    status, told = ask()
    assert status == 200
    assert told["queues"] == {"chat": True, "memory": False, "index": False, "io": True}


def test_a_restore_that_was_broken_off_is_told_of(monkeypatch):
    seen(worker=1, beat=1)
    monkeypatch.setattr(health.marker, "is_set", lambda: True)
    status, told = ask()
    assert (status, told["database"], told["worker"]) == (503, False, True)
    assert "run manage.py restore again" in told["missing"]["database"]


def test_a_database_that_hangs_is_told_of_in_time(monkeypatch):
    released, looks = Event(), []

    def hang():
        looks.append(1)
        released.wait(10)
        return {}, {}

    monkeypatch.setattr(health, "_database", Probe(hang))
    monkeypatch.setattr(health, "PATIENCE", 0.1)
    began = time.monotonic()
    for _ in range(5):
        status, told = ask()
        assert (status, told["database"]) == (503, False)
        assert told["missing"]["worker"] == "Not known without the database."
    assert time.monotonic() - began < 2
    # Nor does each who asks leave a thread behind.
    assert looks == [1]
    released.set()


def test_a_database_that_refuses_is_missing_without_its_address(monkeypatch):
    def refuse(self):
        raise OperationalError("password canary is wrong for postgresql://ana:canary@db")

    monkeypatch.setattr(type(connections["default"]), "cursor", refuse)
    status, told = ask()
    assert (status, told["database"], told["worker"]) == (503, False, False)
    assert "canary" not in json.dumps(told)


def test_a_broker_that_is_away_is_told_of(monkeypatch):
    monkeypatch.setattr(
        health.current_app,
        "connection_for_read",
        lambda: health.current_app.connection("redis://127.0.0.1:9"),
    )
    assert health._look_at_broker() == {"broker": "It cannot be reached, or refuses who asks."}


@pytest.fixture
def new_database() -> Iterator[str]:
    """The name of a database that nobody prepared."""
    name = f"new_{uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield name
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_broker_without_its_tables_is_told_of(monkeypatch, new_database):
    """As in a new database, which has neither schema nor functions of it."""
    empty = f"{database_url('pgmq').rpartition('/')[0]}/{new_database}"
    monkeypatch.setattr(
        health.current_app,
        "connection_for_read",
        lambda: health.current_app.connection(
            empty, transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS
        ),
    )
    told = {"broker": "Its tables are not in the database: run manage.py prepare."}
    assert health._look_at_broker() == told


def test_migrations_that_are_not_applied_are_told_of(monkeypatch):
    monkeypatch.setattr(health, "_migrated", False)
    seen(worker=1, beat=1)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'config' RETURNING name, applied")
        gone = cursor.fetchall()
    try:
        status, told = ask()
    finally:
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('config', %s, %s)", gone
            )
    assert status == 503 and told["database"] is True
    assert told["missing"] == {"migrations": f"{len(gone)} are not applied: run manage.py prepare."}
    assert ask()[0] == 200


def test_without_the_embedding_model_s_file_nothing_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(health.static, "FOLDER", tmp_path)
    seen(worker=1, beat=1)
    status, told = ask()
    assert (status, list(told["missing"])) == (503, ["embedder"])


def test_a_disk_that_is_nearly_full_is_no_reason_to_send_people_away(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100e9, 97e9, 3e9))
    seen(worker=1, beat=1)
    status, told = ask()
    assert status == 200
    assert told["warnings"] == {"disk": "3.0 GB are left where STRATA_DATA_DIR is."}
