"""Ports for programs that tests start."""

import socket


def held_port() -> tuple[socket.socket, int]:
    """A port that nobody else is given, here or for a connection of theirs, until the socket is
    closed; who names it, and reuses addresses as servers do, may listen on it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held, held.getsockname()[1]
