"""Celery broker transport for PostgreSQL's pgmq, based on kombu's."""

from typing import Any

from kombu.transport import pgmq
from kombu.utils.url import sanitize_url
from psycopg.errors import DuplicateObject
from psycopg_pool import ConnectionPool

from config.postgres.server import libpq_url

# Celery notices a shutdown between two drains, and asks for two seconds each.
MAX_DRAIN_S = 0.25


class PgmqChannel(pgmq.Channel):
    """kombu's channel, which lets several processes use a new queue for the first time."""

    def _maybe_enable_notify(self, queue, queue_name=None):
        # Each consumer drops the queue's trigger and creates it again. If another consumer created
        # the trigger meanwhile, only the registration is missing.
        try:
            super()._maybe_enable_notify(queue, queue_name)
        except DuplicateObject:
            self.connection._register_notify_queue(queue_name or self._queue_name(queue))


class PgmqTransport(pgmq.Transport):
    """kombu's transport, which accepts any libpq URL, stops faster and closes failed pools."""

    Channel = PgmqChannel
    # The URL is passed to libpq as a whole: kombu ignores options such as sslmode, and pgmq joins
    # the parts without quotes, so that a folder's name would end at a space.
    can_parse_url = True
    client: Any

    def drain_events(self, connection, timeout=None, **kwargs):
        super().drain_events(connection, timeout=min(timeout or MAX_DRAIN_S, MAX_DRAIN_S))

    def establish_connection(self):
        try:
            return super().establish_connection()
        except Exception:
            # kombu would leave the pool open, with all its connections to the database.
            client, self._pgmq_client = self._pgmq_client, None
            if client is not None and client.pool is not None:
                client.pool.close()
            raise

    @classmethod
    def as_uri(cls, uri: str, include_password: bool = False, mask: str = "**") -> str:
        return uri if include_password else sanitize_url(uri, mask)

    def _create_pgmq_client(self) -> pgmq.PGMQueue:
        options = self.client.transport_options
        pool = ConnectionPool(
            libpq_url(self.client.hostname),
            # Behind a pooler, the next query may reach a server without the prepared statement.
            kwargs={"prepare_threshold": None},
            min_size=1,
            max_size=options["pool_size"],
            open=True,
        )
        client = pgmq.PGMQueue(
            # With None it would use DATABASE_URL of the environment.
            conn_string="",
            pool=pool,
            vt=options["visibility_timeout"],
            init_extension=False,
        )
        # Closes the pool together with the client.
        client._own_pool = True
        return client

    def _get_notify_waiter(self) -> pgmq._NotifyWaiter:
        if self._notify_waiter is None:
            self._notify_waiter = pgmq._NotifyWaiter(libpq_url(self.client.hostname))
        return self._notify_waiter
