"""Limits of each principal in this process: requests, bytes and open streams (FINDINGS B13)."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Final

from prometheus_client import Gauge

from fairlead_schema.errors import LimitReached
from fairlead_schema.identity.principal import PrincipalName

PRINCIPALS_MAX: Final = 10_000
SECONDS_A_MINUTE: Final = 60
OPEN_STREAMS: Final = Gauge(
    "fairlead_http_streams_open", "Event streams, waits and transfers that clients hold open."
)


class RateLimited(LimitReached):
    """A principal used up a limit. `retry_after_s` says when there is room again."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = max(1, math.ceil(retry_after_s))


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """How much one principal may use of one gateway."""

    requests_per_s: float = 500.0
    request_burst: int = 2000
    bytes_per_minute: int = 256 * 1024 * 1024
    streams_max: int = 256


class _Usage:
    """What one principal has left."""

    __slots__ = ("bytes_left", "filled_at", "requests_left", "streams")

    def __init__(self, settings: LimitSettings, now: float) -> None:
        self.requests_left = float(settings.request_burst)
        self.bytes_left = float(settings.bytes_per_minute)
        self.streams = 0
        self.filled_at = now


class PrincipalLimits:
    """Buckets that fill with time. An idle principal is forgotten when there are too many."""

    def __init__(self, settings: LimitSettings, *, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._usages: OrderedDict[PrincipalName, _Usage] = OrderedDict()

    def take_request(self, name: PrincipalName) -> None:
        """Count one request. Raises RateLimited."""
        usage, rate = self._fill(name), self._settings.requests_per_s
        if usage.requests_left < 1:
            text = f"More than {rate:g} requests a second: wait as Retry-After says"
            raise RateLimited(text, (1 - usage.requests_left) / rate)
        usage.requests_left -= 1

    def check_bytes(self, name: PrincipalName) -> None:
        """Refuse a body if the bodies before it used up the minute. Raises RateLimited."""
        usage, per_minute = self._fill(name), self._settings.bytes_per_minute
        if usage.bytes_left <= 0:
            text = f"More than {per_minute} bytes a minute: wait as Retry-After says"
            raise RateLimited(text, -usage.bytes_left * SECONDS_A_MINUTE / per_minute)

    def take_bytes(self, name: PrincipalName, size: int) -> None:
        """Count the bytes of a body that was read."""
        self._fill(name).bytes_left -= size

    @contextmanager
    def open_stream(self, name: PrincipalName) -> Iterator[None]:
        """Hold one stream for the length of a block. Raises RateLimited."""
        usage, most = self._fill(name), self._settings.streams_max
        if usage.streams >= most:
            raise RateLimited(f"{most} streams are open: close one first", 1)
        usage.streams += 1
        OPEN_STREAMS.inc()
        try:
            yield
        finally:
            usage.streams -= 1
            OPEN_STREAMS.dec()

    def _fill(self, name: PrincipalName) -> _Usage:
        now, settings = self._clock(), self._settings
        usage = self._usages.get(name)
        if usage is None:
            usage = self._usages[name] = _Usage(settings, now)
            self._forget_idle()
            return usage
        self._usages.move_to_end(name)
        seconds, usage.filled_at = now - usage.filled_at, now
        gained = seconds * settings.requests_per_s
        usage.requests_left = min(settings.request_burst, usage.requests_left + gained)
        gained = seconds * settings.bytes_per_minute / SECONDS_A_MINUTE
        usage.bytes_left = min(settings.bytes_per_minute, usage.bytes_left + gained)
        return usage

    def _forget_idle(self) -> None:
        if len(self._usages) <= PRINCIPALS_MAX:
            return
        idle = next((name for name, usage in self._usages.items() if not usage.streams), None)
        if idle is not None:
            del self._usages[idle]
