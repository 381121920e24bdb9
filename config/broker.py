"""The broker's transport: kombu's for PostgreSQL, quicker to notice that it is to stop, and tidy
when it cannot connect.
"""

from kombu.transport import pgmq

# Seconds. Celery looks for a stop between two drains, and asks for two seconds each.
LONGEST_DRAIN = 0.25


class Transport(pgmq.Transport):
    def drain_events(self, connection, timeout=None, **kwargs):
        super().drain_events(connection, timeout=min(timeout or LONGEST_DRAIN, LONGEST_DRAIN))

    def establish_connection(self):
        try:
            return super().establish_connection()
        except Exception:
            # kombu leaves the pool behind, with all its connections to the database.
            client, self._pgmq_client = self._pgmq_client, None
            if client is not None and client.pool is not None:
                client.pool.close()
            raise
