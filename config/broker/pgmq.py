"""Celery broker transport for pgmq, a queue in PostgreSQL. It is based on kombu's transport.

A consumer has its own connection. If the queues are in Django's database, messages are sent through
Django's connection, so that a process that only sends needs no other connection.
"""

import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from queue import Empty
from typing import Any

import django.db
import psycopg
from celery.worker import state
from django.conf import settings
from kombu.transport import pgmq, virtual
from kombu.utils.url import sanitize_url
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DuplicateObject

from config.health.heartbeats import CONNECT_TIMEOUT_S
from config.postgres.server import libpq_url
from config.runtime.watchdog import until_heartbeat

# The timeout with which Celery's loop repeatedly asks for messages.
CELERY_TIMEOUT_S = 2.0


class OwnConnection:
    """A single connection with the interface of a pool that pgmq's client uses.

    One thread at a time can use it. It is opened on first use, and again after an error.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.RLock()
        self._open: psycopg.Connection | None = None

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        with self._lock:
            if self._open is None:
                # Without prepared statements: with a pooler, the next query may reach a server
                # connection without them.
                parameters: Any = settings.DATABASE_TIMEOUTS | conninfo_to_dict(self._url)
                parameters["connect_timeout"] = CONNECT_TIMEOUT_S
                self._open = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
            try:
                yield self._open
            except psycopg.OperationalError:
                self.close()
                raise

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    def is_to_djangos_database(self) -> bool:
        ours, djangos = conninfo_to_dict(self._url), django.db.connection.settings_dict
        same_port = str(ours.get("port") or 5432) == str(djangos["PORT"] or 5432)
        return same_port and (ours.get("host"), ours.get("dbname")) == (
            djangos["HOST"],
            djangos["NAME"],
        )


class DjangosConnection:
    """Django's connection of the current thread, with the interface of `OwnConnection`."""

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        shared = django.db.connection
        was_open = shared.connection is not None
        try:
            shared.ensure_connection()
        except django.db.OperationalError as error:
            raise psycopg.OperationalError(str(error)) from error
        assert shared.connection is not None
        try:
            yield shared.connection
        finally:
            if not was_open:
                shared.close()


class PgmqChannel(pgmq.Channel):
    """kombu's channel, but it only changes a queue's tables when the queue is created."""

    connection: "PgmqTransport"

    def _new_queue(self, queue, **kwargs):
        if self.connection.has_queue(self._queue_name(queue)):
            return
        # A consumer drops the queue's trigger and creates it again. Ignore the error if another
        # consumer has created the trigger in the meantime.
        with suppress(DuplicateObject):
            super()._new_queue(queue, **kwargs)

    def _maybe_enable_notify(self, queue, queue_name=None):
        # Without a name, kombu would repeat what it did when the queue was declared.
        if queue_name and self.use_notify:
            self.pgmq.enable_notify(queue_name, self.notify_throttle_interval_ms)

    def _size(self, queue):
        return self.connection.sender.metrics(self._queue_name(queue)).queue_length

    def _put(self, queue, message, **kwargs):
        name, options = self._queue_name(queue), self._pgmq_send_kwargs(message)
        self.connection.sender.send(name, message, **options)

    def basic_consume(self, queue, *args, **kwargs):
        super().basic_consume(queue, *args, **kwargs)
        self.connection.listen(self._queue_name(queue))

    def _get_bulk(self, queue, *args, **kwargs):
        """Fetch messages, but leave slots for the tasks of this worker's other queues."""
        slots = pgmq.PGMQ_MAX_MESSAGES
        if len(self._active_queues) > 1:
            slots = self.transport_options["slots"].get(queue, slots)
        # Copied, because other threads acknowledge messages at the same time.
        delivered, acknowledged = self.qos._delivered.copy(), self.qos._dirty.copy()
        name = self._queue_name(queue)
        taken = sum(
            message.delivery_info.get("pgmq_queue") == name and tag not in acknowledged
            for tag, message in delivered.items()
        )
        if taken >= slots:
            raise Empty
        super()._get_bulk(queue, *args, **kwargs | {"max_if_unlimited": slots - taken})

    def basic_ack(self, *args, **kwargs):
        super().basic_ack(*args, **kwargs)
        self.connection.wake()

    def basic_reject(self, *args, **kwargs):
        super().basic_reject(*args, **kwargs)
        self.connection.wake()


class PgmqTransport(pgmq.Transport):
    """kombu's transport, but it accepts any libpq URL and sleeps until there is work.

    It is woken by notifications, signals and tasks that end. Without notifications, it polls.
    """

    Channel = PgmqChannel
    # The URL is passed to libpq unchanged. kombu would ignore options such as sslmode. pgmq would
    # join the parts without quotation marks, so that the name of a folder would end at a space.
    can_parse_url = True
    client: Any
    cycle: Any

    def __init__(self, client, **kwargs):
        super().__init__(client, **kwargs)
        self._own = OwnConnection(libpq_url(client.hostname))
        self._waker: tuple[socket.socket, socket.socket] | None = None

    @property
    def _listens(self) -> bool:
        return bool(self.client.transport_options["use_notify"])

    @cached_property
    def sender(self) -> pgmq.PGMQueue:
        """Return the client that sends messages."""
        shares = self._own.is_to_djangos_database()
        return self._queue_client(DjangosConnection() if shares else self._own)

    def has_queue(self, name: str) -> bool:
        """Return whether the queue exists and, if required, sends notifications."""
        query = "SELECT 1 FROM pgmq.meta WHERE queue_name = %s"
        if self._listens:
            query += " AND queue_name IN (SELECT queue_name FROM pgmq.notify_insert_throttle)"
        return bool(self.sender._execute_one(query, (name,)))

    def establish_connection(self):
        # Raises an error if the server is down or has no queues. Django's pool would wait instead.
        with self._own.connection() as connection:
            connection.execute("SELECT 1 FROM pgmq.meta")
        self._own.close()
        return virtual.Transport.establish_connection(self)

    def verify_connection(self, connection) -> bool:
        # A broken connection raises an error when it is used.
        return True

    def close_connection(self, connection) -> None:
        super().close_connection(connection)
        self._own.close()
        if self._waker and threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)

    def drain_events(self, connection, timeout=None, **kwargs):
        """Deliver at least one message. Raises `TimeoutError` if there is none."""
        # Celery calls this once more while it stops. Deliver nothing then.
        if state.should_stop is not None or state.should_terminate is not None:
            raise TimeoutError
        # Limited, because messages become visible again without notification, and for heartbeats.
        seconds = until_heartbeat() if timeout in (None, CELERY_TIMEOUT_S) else timeout
        deadline = time.monotonic() + seconds
        while True:
            with suppress(Empty):
                self.cycle.get(self._deliver)
                return
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if self._sleep(left if self._listens else min(left, self.polling_interval)):
                # Return to Celery, which checks whether it must stop and asks again.
                deadline = 0.0

    def listen(self, queue_name: str) -> None:
        """Let a new message in this queue, `wake` or a signal end the wait for messages."""
        if self._waker is None:
            self._waker = socket.socketpair()
            for end in self._waker:
                end.setblocking(False)
            if threading.current_thread() is threading.main_thread():
                signal.set_wakeup_fd(self._waker[1].fileno(), warn_on_full_buffer=False)
        if self._listens:
            with self._own.connection() as connection:
                connection.execute(f'LISTEN "pgmq.q_{queue_name}.INSERT"')

    def wake(self) -> None:
        if self._waker:
            with suppress(BlockingIOError):
                self._waker[1].send(b"\0")

    def _sleep(self, seconds: float) -> bool:
        """Wait for a notification. Return whether `wake` or a signal ended the wait."""
        assert self._waker
        with self._own.connection() as connection:
            descriptor = connection.fileno()
        # Without holding the lock, so that other threads can acknowledge messages.
        ready, _, _ = select.select([descriptor, self._waker[0].fileno()], [], [], seconds)
        if descriptor in ready:
            with self._own.connection() as connection:
                connection.pgconn.consume_input()
                while connection.pgconn.notifies():
                    pass
        if self._waker[0].fileno() not in ready:
            return False
        self._waker[0].recv(4096)
        return True

    @classmethod
    def as_uri(cls, uri: str, include_password: bool = False, mask: str = "**") -> str:
        return uri if include_password else sanitize_url(uri, mask)

    def _create_pgmq_client(self) -> pgmq.PGMQueue:
        return self._queue_client(self._own)

    def _queue_client(self, connection: OwnConnection | DjangosConnection) -> pgmq.PGMQueue:
        return pgmq.PGMQueue(
            # Not None, because DATABASE_URL of the environment would then be used.
            conn_string="",
            pool=connection,  # type: ignore[arg-type]
            vt=self.client.transport_options["visibility_timeout"],
            init_extension=False,
        )
