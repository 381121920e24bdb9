"""/readyz: the missing components with a reason, within the timeout even if one hangs."""

import json
import shutil
from collections import namedtuple
from collections.abc import Iterator
from datetime import timedelta
from threading import Event
from unittest.mock import Mock
from uuid import uuid4

import psycopg
import pytest
from amqp.exceptions import AccessRefused
from django.conf import settings
from django.db import OperationalError, connection, connections
from django.db.models.functions import Now
from django.test import RequestFactory
from kombu import Connection

from config.health import heartbeats, views
from config.health.probes import Probe
from config.models import Heartbeat
from tests.server import database_url

pytestmark = pytest.mark.django_db(transaction=True)
PARTS = ("database", "broker", "worker", "beat")


@pytest.fixture(autouse=True)
def working_broker(monkeypatch):
    monkeypatch.setattr(views, "_broker", Probe(dict))


def create_heartbeats(**ages: int) -> None:
    for part, age in ages.items():
        Heartbeat.objects.create(part=part, seen_at=Now() - timedelta(seconds=age))


def ask() -> tuple[int, dict]:
    # Not through the test client: its middleware queries the database too.
    answer = views.readyz(RequestFactory().get("/readyz"))
    return answer.status_code, json.loads(answer.content)


def test_readyz_answers_200_when_all_components_are_alive():
    create_heartbeats(worker=5, beat=12)
    status, body = ask()
    assert (status, body["missing"], body["warnings"]) == (200, {}, {})
    assert {part: body[part] for part in PARTS} == dict.fromkeys(PARTS, True)
    assert 5 <= body["seen_seconds_ago"]["worker"] < 20


def test_a_component_without_a_recent_heartbeat_is_missing():
    create_heartbeats(worker=130)
    status, body = ask()
    assert status == 503
    assert {part: body[part] for part in PARTS} == {
        "database": True,
        "broker": True,
        "worker": False,
        "beat": False,
    }
    assert body["missing"]["worker"].startswith("No heartbeat for 13")
    assert body["missing"]["beat"] == "No heartbeat yet."


def test_a_heartbeat_from_the_future_counts_as_missing():
    create_heartbeats(worker=-7_200, beat=-5)
    status, body = ask()
    assert (status, body["worker"], body["beat"]) == (503, False, True)
    assert body["missing"]["worker"] == "No heartbeat since the clock was set back."


def test_a_queue_without_a_consumer_is_reported():
    heartbeats.record(["worker", "beat", heartbeats.queue("chat"), heartbeats.queue("io")])
    status, body = ask()
    assert status == 200
    assert body["queues"] == {
        "chat": True,
        "memory": False,
        "index": False,
        "io": True,
        "webhooks": False,
    }


def test_an_unfinished_restore_is_reported(monkeypatch):
    create_heartbeats(worker=1, beat=1)
    monkeypatch.setattr(views.restore_marker, "is_set", lambda: True)
    status, body = ask()
    assert (status, body["database"], body["worker"]) == (503, False, True)
    assert "run manage.py restore again" in body["missing"]["database"]


def test_a_database_that_hangs_is_reported_in_time(monkeypatch):
    released, looks = Event(), []

    def hang():
        looks.append(1)
        released.wait(10)
        return {}, {}

    monkeypatch.setattr(views, "_database", Probe(hang))
    monkeypatch.setattr(views, "TIMEOUT_S", 0.1)
    for _ in range(5):
        status, body = ask()
        assert (status, body["database"]) == (503, False)
        assert body["missing"]["worker"] == "Unknown without the database."
    released.set()
    # The requests shared one thread.
    assert looks == [1]
    released.set()


def test_a_database_that_refuses_is_reported_without_its_address(monkeypatch):
    def refuse(self):
        raise OperationalError("password canary is wrong for postgresql://ana:canary@db")

    monkeypatch.setattr(type(connections["default"]), "cursor", refuse)
    status, body = ask()
    assert (status, body["database"], body["worker"]) == (503, False, False)
    assert "canary" not in json.dumps(body)


def test_an_unreachable_broker_is_reported(monkeypatch):
    monkeypatch.setattr(
        views.current_app,
        "connection_for_read",
        lambda: views.current_app.connection("redis://127.0.0.1:9"),
    )
    assert views.check_broker() == {"broker": "Unreachable, or it refuses the connection."}


def test_a_rabbitmq_that_refuses_the_password_is_reported(monkeypatch):
    class Refusing(Connection):
        def ensure_connection(self, *args, **options):
            raise AccessRefused("Login was refused using authentication mechanism PLAIN.")

    monkeypatch.setattr(views.current_app, "connection_for_read", lambda: Refusing("amqp://"))
    assert views.check_broker() == {"broker": "Unreachable, or it refuses the connection."}


@pytest.fixture
def new_database() -> Iterator[str]:
    """The name of a database that nobody prepared."""
    name = f"new_{uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield name
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_broker_without_tables_is_reported(monkeypatch, new_database):
    """As in a new database, which has neither schema nor functions of it."""
    empty = f"{database_url('pgmq').rpartition('/')[0]}/{new_database}"
    monkeypatch.setattr(
        views.current_app,
        "connection_for_read",
        lambda: views.current_app.connection(
            empty, transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS
        ),
    )
    body = {"broker": "Its tables are not in the database: run manage.py prepare."}
    assert views.check_broker() == body


def test_unapplied_migrations_are_reported(monkeypatch):
    monkeypatch.setattr(views, "_migrations_applied", False)
    create_heartbeats(worker=1, beat=1)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'config' RETURNING name, applied")
        rows = cursor.fetchall()
    try:
        status, body = ask()
    finally:
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('config', %s, %s)", rows
            )
    assert status == 503 and body["database"] is True
    assert body["missing"] == {"migrations": f"{len(rows)} are not applied: run manage.py prepare."}
    assert ask()[0] == 200


def test_a_missing_embedding_model_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(views.static, "MODEL_DIR", tmp_path)
    create_heartbeats(worker=1, beat=1)
    status, body = ask()
    assert (status, list(body["missing"])) == (503, ["embedder"])


def test_an_almost_full_disk_is_only_a_warning(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100e9, 97e9, 3e9))
    create_heartbeats(worker=1, beat=1)
    status, body = ask()
    assert status == 200
    assert body["warnings"] == {"disk": "3.0 GB are left on the disk of STRATA_DATA_DIR."}


def test_a_worker_updates_its_file_even_without_a_database(monkeypatch, settings, tmp_path):
    settings.HEARTBEAT_FILE = tmp_path / "heartbeat"
    monkeypatch.setattr(psycopg, "connect", Mock(side_effect=psycopg.OperationalError))
    heartbeats.record_on_own_connection(["worker"])
    assert settings.HEARTBEAT_FILE.exists()
