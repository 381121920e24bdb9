"""The broker is where its address says, as PostgreSQL itself reads addresses."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from kombu import Consumer, Queue

from config.broker import pgmq
from config.celery import app
from config.postgres import server
from projects.core.database import own_connection
from tests.server import database_url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def address() -> str:
    """The test's database, as a broker."""
    url = database_url("pgmq")
    server.install_broker(url)
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


def test_connections_to_a_database_that_is_cut_off_end_after_seconds(address):
    """Of the broker and of Django. An address may have limits of its own."""
    limits = {"tcp_user_timeout": "20000", "keepalives_idle": "10"}
    with own_connection() as django_connection:
        assert limits.items() <= django_connection.info.get_parameters().items()
    with pgmq.OwnConnection(f"{server.libpq_url(address)}?keepalives_idle=30").connection() as own:
        changed = limits | {"keepalives_idle": "30"}
        assert changed.items() <= own.info.get_parameters().items()


def test_two_workers_may_be_the_first_to_use_a_queue(address, queue_name):
    """Both find no trigger; the second waits for the first, which creates it."""
    with (
        psycopg.connect(server.libpq_url(address)) as other,
        app.connection_for_write(address) as ours,
        ThreadPoolExecutor() as pool,
    ):
        other.execute("SELECT pgmq.create(%s)", [queue_name])
        other.commit()
        limits = "INSERT INTO pgmq.notify_insert_throttle (queue_name) VALUES (%s)"
        other.execute(limits, [queue_name])
        queue = pool.submit(ours.SimpleQueue, queue_name)
        wait_until_blocked_by(other)
        other.execute("SELECT pgmq.enable_notify_insert(%s)", [queue_name])
        other.commit()
        queue.result(timeout=20).put("Anyone there?")
        assert queue.result().get(timeout=20).payload == "Anyone there?"


def wait_until_blocked_by(other: psycopg.Connection) -> None:
    deadline = time.monotonic() + 20
    blocked = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    with connection.cursor() as cursor:
        while not cursor.execute(blocked, [other.info.backend_pid]).fetchone():
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_its_password_is_hidden():
    url = "pgmq://ana:se%20cret@db.example/strata?sslmode=require"
    assert app.connection_for_write(url).as_uri() == "pgmq://ana:**@db.example/strata"


@pytest.fixture
def consumed(address) -> Iterator[Callable[[Mapping[str, int]], list]]:
    """Opens two queues with these slots; what was delivered, not acknowledged."""
    with app.connection_for_write(address) as ours:
        names = [f"test_{uuid4().hex}" for _ in range(2)]

        def consume(slots: Mapping[str, int]) -> tuple[Any, list[str], list]:
            delivered: list = []
            options = ours.transport_options
            ours.transport_options = options | {"slots": {names[0]: slots["first"]}}
            queues = [Queue(name) for name in names]
            consumer = Consumer(ours, queues, on_message=delivered.append, prefetch_count=9)
            consumer.consume()
            return ours, names, delivered

        yield consume
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute("SELECT pgmq.drop_queue(%s)", [name])


def drain(ours: Any) -> None:
    with suppress(TimeoutError):
        while True:
            ours.drain_events(timeout=0.1)


def test_a_queue_takes_only_its_slots_and_leaves_the_rest_to_others(consumed):
    ours, (first, second), delivered = consumed({"first": 2})
    with ours.Producer() as producer:
        for number in range(4):
            producer.publish(number, routing_key=first)
            producer.publish(number, routing_key=second)
    drain(ours)
    queues = [message.delivery_info["pgmq_queue"] for message in delivered]
    assert (queues.count(first), queues.count(second)) == (2, 4)
    next(item for item in delivered if item.delivery_info["pgmq_queue"] == first).ack()
    drain(ours)
    assert len(delivered) == 7


def test_a_message_wakes_a_consumer_that_waits(consumed, address):
    ours, (first, _), delivered = consumed({"first": 2})
    drain(ours)

    def send() -> None:
        with app.connection_for_write(address) as other, other.Producer() as producer:
            producer.publish("Anyone there?", routing_key=first)

    with ThreadPoolExecutor() as pool:
        sent = pool.submit(send)
        # Without a notification, it would look again only after the time-out.
        ours.drain_events(timeout=60)
        sent.result()
    assert [message.payload for message in delivered] == ["Anyone there?"]


def test_a_sender_in_djangos_database_opens_no_connection(address, queue_name):
    # Other test processes use databases of their own, and PostgreSQL's workers are no clients.
    count = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    with app.connection_for_write(address) as ours, connection.cursor() as cursor:
        ours.default_channel.queue_declare(queue_name)
        before = cursor.execute(count).fetchone()
        with app.connection_for_write(address) as other, other.Producer() as producer:
            producer.publish("Anyone there?", routing_key=queue_name)
            assert cursor.execute(count).fetchone() == before
