"""Limits the failed logins from one address. Valid credentials are never held up by others' failures."""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Final

from fairlead_gateway.http.principal_limits import RateLimited

PER_SECOND: Final = 5.0
BURST: Final = 300
PEERS_MAX: Final = 10_000
# One subscriber has at least so much of IPv6.
IPV6_PREFIX: Final = 64
UNKNOWN: Final = "unknown"


class FailedLogins:
    """One bucket for each address. The address that failed longest ago is forgotten first."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._peers: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What an address has left, and when that was counted."""

    def take(self, host: str | None) -> None:
        """Count one failed login. Raises RateLimited."""
        peer, now = peer_of(host), self._clock()
        left, counted_at = self._peers.pop(peer, (float(BURST), now))
        left = min(BURST, left + (now - counted_at) * PER_SECOND)
        allowed = left >= 1
        self._peers[peer] = (left - 1 if allowed else left, now)
        if len(self._peers) > PEERS_MAX:
            self._peers.popitem(last=False)
        if not allowed:
            text = "Too many failed logins from this address: check the token, then try again"
            raise RateLimited(text, (1 - left) / PER_SECOND)


def peer_of(host: str | None) -> str:
    """The address that is counted. A header of a proxy may hold any text, which is not kept."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return UNKNOWN
    if address.version == 6:  # noqa: PLR2004 - IPv6
        return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))
    return str(address)
