"""Loopback ports: find a free one, or say plainly that one is taken."""

import socket
from typing import Final

from fairlead_cli.errors import PortTaken

LOOPBACK: Final = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on now."""
    held = [socket.socket() for _ in range(count)]
    try:
        for sock in held:
            sock.bind((LOOPBACK, 0))
        return [int(sock.getsockname()[1]) for sock in held]
    finally:
        for sock in held:
            sock.close()


def free_port() -> int:
    """A port that nobody listens on now."""
    return free_ports(1)[0]


def taken(port: int) -> bool:
    """Whether a server could not listen there."""
    with socket.socket() as sock:
        # As servers do: connections that linger after a restart do not count.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((LOOPBACK, port))
            sock.listen()
        except OSError:
            return True
    return False


def claim(port: int, what: str, option: str) -> int:
    """The port asked for, or a free one for 0. Raises PortTaken."""
    if port == 0:
        return free_port()
    if taken(port):
        raise PortTaken(port, what, option)
    return port
