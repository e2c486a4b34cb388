"""Loopback ports: finds free ports, and checks that a wanted port is free."""

import itertools
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlead_cli.errors import PortTaken

LOOPBACK: Final = "127.0.0.1"
PORTS_FROM: Final = 12_000
PORTS_TO: Final = 32_000
EPHEMERAL_RANGE_FILE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def _server_ports() -> range:
    """The larger range of ports below or above the kernel's ephemeral range."""
    try:
        low, high = map(int, EPHEMERAL_RANGE_FILE.read_text().split())
    except (OSError, ValueError):
        return range(PORTS_FROM, PORTS_TO)
    below, above = range(PORTS_FROM, min(low, PORTS_TO)), range(high + 1, 65_536)
    return max(below, above, key=len)


def _candidates() -> Iterator[int]:
    """The ports from a random start on, so that two processes rarely choose the same port."""
    start = random.randrange(len(_RANGE))  # noqa: S311 - not for security
    return itertools.cycle((*_RANGE[start:], *_RANGE[:start]))


_RANGE: Final = _server_ports()
_CANDIDATES: Final = _candidates()


def free_ports(count: int) -> list[int]:
    """Different ports without a listener, outside the kernel's ephemeral range.

    The kernel gives ephemeral ports to outgoing connections. A server on such a port may find it in
    use after a restart, even by a client that reconnects to this server.
    """
    ports: list[int] = []
    for port in itertools.islice(_CANDIDATES, len(_RANGE)):
        if len(ports) == count:
            return ports
        if not is_taken(port):
            ports.append(port)
    raise OSError(f"fewer than {count} free ports between {_RANGE.start} and {_RANGE.stop}")


def free_port() -> int:
    """A port without a listener."""
    return free_ports(1)[0]


def is_taken(port: int) -> bool:
    """Whether a server cannot listen on the port."""
    with socket.socket() as sock:
        # Servers set this too: connections in TIME_WAIT do not keep them from listening.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((LOOPBACK, port))
            sock.listen()
        except OSError:
            return True
    return False


def claim_port(port: int, purpose: str, option: str) -> int:
    """The given port, or a free port for 0. Raises PortTaken."""
    if port == 0:
        return free_port()
    if is_taken(port):
        raise PortTaken(port, purpose, option)
    return port
