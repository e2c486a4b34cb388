"""Loopback ports: find a free one, or say plainly that one is taken."""

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
KERNELS_OWN: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def _range() -> range:
    """Ports for servers: below those of connections, or above them where these begin low."""
    try:
        low, high = map(int, KERNELS_OWN.read_text().split())
    except (OSError, ValueError):
        return range(PORTS_FROM, PORTS_TO)
    below, above = range(PORTS_FROM, min(low, PORTS_TO)), range(high + 1, 65_536)
    return max(below, above, key=len)


def _candidates() -> Iterator[int]:
    """Each once, from anywhere on: two processes that choose at a time rarely meet."""
    start = random.randrange(len(_RANGE))  # noqa: S311 - it spreads processes, it guards nothing
    return itertools.cycle((*_RANGE[start:], *_RANGE[:start]))


_RANGE: Final = _range()
_CANDIDATES: Final = _candidates()


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on now, and that no connection is given by chance.

    The kernel gives connections ports of a range of its own. A server that is killed there may find
    its port taken by a client, by one that calls for this very server even, when it comes back.
    """
    chosen: list[int] = []
    for port in itertools.islice(_CANDIDATES, len(_RANGE)):
        if len(chosen) == count:
            return chosen
        if not taken(port):
            chosen.append(port)
    raise OSError(f"fewer than {count} free ports between {_RANGE.start} and {_RANGE.stop}")


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
