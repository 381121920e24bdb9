"""The transport of a Redis broker: kombu's, whose workers go on when Redis comes back."""

from contextlib import contextmanager

from kombu.transport import redis, virtual


class QoS(redis.QoS):
    """Counts what was taken and not yet acknowledged, and lets no more be taken than there are
    slots.
    """

    def ack(self, delivery_tag):
        with self._freeing(delivery_tag):
            super().ack(delivery_tag)

    def reject(self, delivery_tag, requeue=False):
        with self._freeing(delivery_tag):
            super().reject(delivery_tag, requeue)

    @contextmanager
    def _freeing(self, delivery_tag):
        try:
            yield
        except Exception:
            # Redis is away. kombu leaves the slot taken for ever: with every slot so, a worker has
            # nothing to ask Redis for, does not notice that its line is cut, and waits.
            virtual.QoS.ack(self, delivery_tag)
            raise


class Channel(redis.Channel):
    QoS = QoS


class Transport(redis.Transport):
    Channel = Channel
