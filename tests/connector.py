"""Record outgoing connections. Names resolve as the tests define.

Nothing is sent, also when what should refuse an address does not: only to receivers of the test's
own are connections made.
"""

import socket
from collections import Counter
from urllib.parse import urlsplit

from django.conf import settings

from tests.addresses import RESOLVER

REAL_LOOK_UP = socket.getaddrinfo
REAL_CONNECT = socket.socket.connect


class Connector:
    """`seen`: the (address, port) of every try to connect; `asked`: how often each name was."""

    def __init__(self, monkeypatch) -> None:
        self.connections: list[tuple[str, int]] = []
        self.lookups: Counter[str] = Counter()
        self.receivers: set[tuple[str, int]] = set()
        self.names = dict(RESOLVER)
        broker = urlsplit(settings.CELERY_BROKER_URL)
        self._broker = (broker.hostname, broker.port)
        connector = self
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

        def connect(connection: socket.socket, address):
            connector._record(connection, address)
            return REAL_CONNECT(connection, address)

        monkeypatch.setattr(socket.socket, "connect", connect)
        monkeypatch.setattr(socket.socket, "connect_ex", connect)

    def _record(self, connection: socket.socket, address) -> None:
        if (
            connection.family not in (socket.AF_INET, socket.AF_INET6)
            or address[:2] == self._broker
        ):
            return
        self.connections.append(address[:2])
        if address[:2] not in self.receivers:
            raise ConnectionRefusedError("recorded, and not connected")

    def _look_up(self, host, port, family=0, type=0, proto=0, flags=0):
        name = host.decode() if isinstance(host, bytes) else host
        if name.lower() not in self.names:
            # Only what is a number in some form: nobody's resolver is asked.
            return REAL_LOOK_UP(host, port, family, type, proto, flags | socket.AI_NUMERICHOST)
        answers = self.names[name.lower()]
        number = min(self.lookups[name.lower()], len(answers) - 1)
        self.lookups[name.lower()] += 1
        return [
            result
            for address in answers[number]
            for result in REAL_LOOK_UP(address.partition("%")[0], port, 0, type)
        ]
