"""The broker's transport: kombu's for PostgreSQL, at the address that it is given, quicker to
notice that it is to stop, and tidy when it cannot connect.
"""

from collections.abc import Iterable
from typing import Any

from celery import current_app
from kombu.transport import pgmq
from kombu.utils.url import sanitize_url
from psycopg_pool import ConnectionPool

from config.embedded import libpq_address

# Seconds. Celery looks for a stop between two drains, and asks for two seconds each.
LONGEST_DRAIN = 0.25


class Transport(pgmq.Transport):
    # The address comes whole and goes to libpq: kombu knows no options, such as sslmode, and pgmq
    # puts the parts together without quotes, so that a folder with a space would end at it.
    can_parse_url = True
    client: Any

    def drain_events(self, connection, timeout=None, **kwargs):
        super().drain_events(connection, timeout=min(timeout or LONGEST_DRAIN, LONGEST_DRAIN))

    def establish_connection(self):
        try:
            return super().establish_connection()
        except Exception:
            # Whatever kept it from connecting, kombu leaves the pool behind, with all its
            # connections to the database.
            client, self._pgmq_client = self._pgmq_client, None
            if client is not None and client.pool is not None:
                client.pool.close()
            raise

    @classmethod
    def as_uri(cls, uri: str, include_password: bool = False, mask: str = "**") -> str:
        return uri if include_password else sanitize_url(uri, mask)

    @property
    def _address(self) -> str:
        return libpq_address(self.client.hostname)

    def _create_pgmq_client(self) -> pgmq.PGMQueue:
        options = self.client.transport_options
        pool = ConnectionPool(
            self._address,
            # Behind a pooler the next query may meet a server that knows no prepared statement.
            kwargs={"prepare_threshold": None},
            min_size=1,
            max_size=options["pool_size"],
            open=True,
        )
        client = pgmq.PGMQueue(
            # Not None: it would go where DATABASE_URL of the environment points.
            conn_string="",
            pool=pool,
            vt=options["visibility_timeout"],
            init_extension=False,
        )
        # To be closed with it.
        client._own_pool = True
        return client

    def _get_notify_waiter(self) -> pgmq._NotifyWaiter:
        if self._notify_waiter is None:
            self._notify_waiter = pgmq._NotifyWaiter(self._address)
        return self._notify_waiter


def waiting(names: Iterable[str]) -> dict[str, int]:
    """How many messages wait in each of these queues, whatever the broker; 0 in one that nobody
    used yet. Raises what the broker's library raises while it is away.
    """
    found = {}
    with current_app.connection_for_read() as broker:
        for name in names:
            # A channel of its own: RabbitMQ closes the one that asks for what is not there.
            with broker.channel() as channel:
                try:
                    found[name] = channel.queue_declare(name, passive=True).message_count
                except broker.channel_errors:
                    found[name] = 0
    return found
