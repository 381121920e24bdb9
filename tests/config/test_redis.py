"""A worker and its Redis, which goes away and comes back."""

import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from kombu import Consumer, Message
from redis import Redis
from redis.exceptions import ConnectionError as NoRedis

from config.celery import app
from tests.shape.ports import reserved_port

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server here"),
]


@pytest.fixture
def port() -> Iterator[int]:
    reservation, port = reserved_port()
    yield port
    reservation.close()


@pytest.fixture
def redis(port, tmp_path) -> Iterator[subprocess.Popen]:
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    for _ in range(200):
        try:
            Redis(port=port).ping()
            break
        except NoRedis:
            time.sleep(0.05)
    yield server
    server.kill()
    server.wait()


@pytest.mark.parametrize("give_back", [Message.ack, Message.reject, Message.requeue])
def test_a_message_that_cannot_be_returned_takes_no_slot(redis, port, give_back):
    tasks_run = []
    with app.connection_for_read(f"redis://127.0.0.1:{port}/0") as connection:
        with connection.SimpleQueue("talk") as queue:
            queue.put("Anyone there?")
        channel = connection.default_channel
        channel.basic_qos(0, 1, False)
        with Consumer(
            channel, [app.amqp.queues["talk"]], on_message=tasks_run.append, accept=["json"]
        ):
            connection.drain_events(timeout=20)
        [message] = tasks_run
        assert not channel.qos.can_consume()
        redis.kill()
        redis.wait()
        with pytest.raises(NoRedis):
            give_back(message)
        assert channel.qos.can_consume()
