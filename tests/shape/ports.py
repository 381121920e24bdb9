"""Ports for programs that tests start."""

import socket


def reserved_port() -> tuple[socket.socket, int]:
    """A port that nobody else is given, here or for a connection of theirs, until the socket is
    closed; who names it, and reuses addresses as servers do, may listen on it.
    """
    port_socket = socket.socket()
    port_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port_socket.bind(("127.0.0.1", 0))
    return port_socket, port_socket.getsockname()[1]
