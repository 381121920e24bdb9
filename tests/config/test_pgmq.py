"""The broker is where its address says, as PostgreSQL itself reads addresses."""

from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.db import connection

from config import broker, embedded
from config.celery import app
from tests.server import database_url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def address() -> str:
    """The test's database, as a broker."""
    url = database_url("pgmq")
    embedded.install_broker(url)
    return url


@pytest.fixture
def queue_name() -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    yield name
    with connection.cursor() as cursor:
        cursor.execute("SELECT pgmq.drop_queue(%s)", [name])


def echo(url: str, name: str) -> str:
    """What comes back of a message that is sent through the broker at `url`."""
    with app.connection_for_write(url) as ours, ours.SimpleQueue(name) as queue:
        queue.put("Anyone there?")
        got = queue.get(timeout=20)
        got.ack()
        return got.payload


def test_a_message_comes_back(address, queue_name):
    assert echo(address, queue_name) == "Anyone there?"


def test_it_is_not_where_another_address_of_the_environment_points(
    address, queue_name, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@%2Fnowhere/nothing")
    assert echo(address, queue_name) == "Anyone there?"


def test_its_folder_may_have_spaces(address, queue_name, tmp_path):
    folder = tmp_path / "my projects"
    folder.symlink_to(connection.settings_dict["HOST"])
    url = f"pgmq://postgres@{quote(str(folder), safe='')}/{connection.settings_dict['NAME']}"
    assert echo(url, queue_name) == "Anyone there?"


def test_its_options_are_heeded(address, queue_name):
    url = f"{address}?application_name=the%20broker"
    with app.connection_for_write(url) as ours, ours.SimpleQueue(queue_name) as queue:
        queue.put("Anyone there?")
        with connection.cursor() as cursor:
            cursor.execute("SELECT DISTINCT application_name FROM pg_stat_activity")
            assert ("the broker",) in cursor.fetchall()


def test_it_tells_how_many_messages_wait(address, queue_name, monkeypatch):
    here = SimpleNamespace(connection_for_read=lambda: app.connection_for_read(address))
    monkeypatch.setattr(broker, "current_app", here)
    assert broker.waiting([queue_name, "nobodys"]) == {queue_name: 0, "nobodys": 0}
    with app.connection_for_write(address) as ours, ours.SimpleQueue(queue_name) as queue:
        queue.put("One")
        queue.put("Another")
    assert broker.waiting([queue_name, "nobodys"]) == {queue_name: 2, "nobodys": 0}


def test_its_password_is_not_told():
    url = "pgmq://ana:se%20cret@db.example/strata?sslmode=require"
    assert app.connection_for_write(url).as_uri() == "pgmq://ana:**@db.example/strata"
