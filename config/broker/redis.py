"""Celery broker transport for Redis, based on kombu's: workers recover when Redis is back."""

from contextlib import contextmanager

from kombu.transport import redis, virtual


class RecoveringQoS(redis.QoS):
    """Prefetch counter that frees a message's slot even if Redis cannot be reached.

    kombu would keep the slot for ever. With all slots taken, a worker requests nothing from Redis,
    does not notice that its connection is lost, and waits.
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
            virtual.QoS.ack(self, delivery_tag)
            raise


class RedisChannel(redis.Channel):
    QoS = RecoveringQoS


class RedisTransport(redis.Transport):
    Channel = RedisChannel
