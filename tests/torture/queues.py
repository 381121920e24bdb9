"""The broker as those see it who kill what takes from it."""

import time
from typing import Any

from django.conf import settings
from django.db import connection

from config.celery import app
from config.postgres import server
from tests.server import database_url


class PostgresQueue:
    """The queue `memory`, in the test's database as in production."""

    def __init__(self) -> None:
        self.url = database_url("pgmq")
        server.install_broker(self.url)
        with self._connection() as broker:
            broker.default_channel.queue_declare("memory")
        self._sql("SELECT pgmq.purge_queue('memory')")

    def send(self, task, *args: str, **options) -> None:
        with self._connection() as broker:
            task.apply_async(args, connection=broker, **options)

    def __len__(self) -> int:
        """Messages that are not acknowledged yet, taken or not."""
        return self._sql("SELECT count(*) FROM pgmq.q_memory")

    def waiting(self) -> int:
        """Messages that anybody may take."""
        return self._sql("SELECT count(*) FROM pgmq.q_memory WHERE vt <= clock_timestamp()")

    def hidden_for(self) -> float:
        """Seconds until every message that was taken will have come back."""
        return self._sql(
            "SELECT coalesce(extract(epoch FROM max(vt) - clock_timestamp()), 0) FROM pgmq.q_memory"
        )

    def let_visibility_run_out(self) -> None:
        """As time passes: what was taken and not acknowledged comes back."""
        self._sql("UPDATE pgmq.q_memory SET vt = least(vt, clock_timestamp()) RETURNING 1")

    def _connection(self):
        return app.connection_for_write(self.url)

    def _sql(self, query: str):
        with connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
            return row[0] if row else None


class RedisQueue:
    """The same in Redis, by the names that kombu gives to its keys."""

    def __init__(self) -> None:
        self.url = settings.CELERY_BROKER_URL
        self._broker: Any = app.connection_for_write(self.url)
        self._channel = self._broker.default_channel
        self._redis = self._channel.client
        self._redis.flushdb()
        self._channel.queue_declare("memory")

    def send(self, task, *args: str, **options) -> None:
        task.apply_async(args, connection=self._broker, **options)

    def __len__(self) -> int:
        # What is being taken is in neither place for a moment.
        first = self._count()
        time.sleep(0.1)
        return max(first, self._count())

    def _count(self) -> int:
        return self.waiting() + self._redis.zcard("unacked_index")

    def waiting(self) -> int:
        return self._redis.llen("memory")

    def hidden_for(self) -> float:
        unacked = self._redis.zrange("unacked_index", -1, -1, withscores=True)
        hidden = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
        return max((at + hidden - time.time() for _, at in unacked), default=0.0)

    def let_visibility_run_out(self) -> None:
        """By kombu's own hands, which a worker lends it every hundred seconds."""
        for tag in self._redis.zrange("unacked_index", 0, -1):
            self._channel.qos.restore_by_tag(tag.decode())


Queue = PostgresQueue | RedisQueue


def current_queue() -> Queue:
    """The queue of the broker that is set."""
    in_redis = settings.CELERY_BROKER_URL.startswith("redis")
    return RedisQueue() if in_redis else PostgresQueue()
