"""The broker's transport: kombu's for PostgreSQL, quicker to notice that it is to stop."""

from kombu.transport import pgmq

# Seconds. Celery looks for a stop between two drains, and asks for two seconds each.
LONGEST_DRAIN = 0.25


class Transport(pgmq.Transport):
    def drain_events(self, connection, timeout=None, **kwargs):
        super().drain_events(connection, timeout=min(timeout or LONGEST_DRAIN, LONGEST_DRAIN))
