"""Celery broker transport for Redis, based on kombu's. Its workers recover when Redis returns."""

from contextlib import contextmanager

from kombu.transport import redis, virtual


class RecoveringQoS(redis.QoS):
    """Prefetch counter that frees the slot of a message even if Redis is not reachable.

    kombu would never free the slot. When all slots are taken, a worker requests nothing from Redis,
    does not notice that the connection is lost, and waits forever.
    """

    def ack(self, delivery_tag):
        with self.freed_on_error(delivery_tag):
            super().ack(delivery_tag)

    def reject(self, delivery_tag, requeue=False):
        with self.freed_on_error(delivery_tag):
            super().reject(delivery_tag, requeue)

    @contextmanager
    def freed_on_error(self, delivery_tag):
        try:
            yield
        except Exception:
            # After any error, the slot of the message must be free for the next one.
            virtual.QoS.ack(self, delivery_tag)
            raise


class RedisChannel(redis.Channel):
    QoS = RecoveringQoS


class RedisTransport(redis.Transport):
    Channel = RedisChannel
