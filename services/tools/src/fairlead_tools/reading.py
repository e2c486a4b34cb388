"""Reads sources beside the event loop: each in a thread, for a bounded time, and never twice at once."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from fairlead_schema.context import Observation, Unavailable, Why
from fairlead_tools.metrics import AWAY
from fairlead_tools.sources.files import Unreadable

log = logging.getLogger(__name__)

THREADS_MAX: Final = 32

Read: TypeAlias = Callable[[], Observation | None]
"""Observes a source; None when there is nothing of the kind."""


class Reading:
    """Reads that may hang. One that does keeps its thread, and nobody sends another after it."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="observe")
        self._hung: dict[tuple[str, str], asyncio.Future[Observation | None]] = {}

    async def source(self, key: str, place: str, read: Read) -> Observation | None:
        """What a source of a place says now. Whatever goes wrong makes it unavailable, never gone."""
        if (key, place) in self._hung:
            return unavailable(key, "timeout", f"an earlier look at {place} still hangs")
        reading = asyncio.get_running_loop().run_in_executor(self._threads, read)
        await asyncio.wait({reading}, timeout=self._timeout_s)
        if not reading.done():
            self._hung[key, place] = reading
            reading.add_done_callback(lambda done: self._over(key, place, done))
            return unavailable(key, "timeout", f"not read within {self._timeout_s:g} s")
        try:
            return reading.result()
        except Unreadable as error:
            return unavailable(key, error.why, error.reason)
        except OSError as error:
            return unavailable(key, "unreadable", error.strerror or str(error))
        except Exception as error:
            log.exception("source failed", extra={"key": key})
            return unavailable(key, "defect", str(error) or type(error).__name__)

    def _over(self, key: str, place: str, done: asyncio.Future[Observation | None]) -> None:
        self._hung.pop((key, place), None)
        if not done.cancelled():
            done.exception()


def unavailable(key: str, why: Why, reason: str, *, required: bool = True) -> Unavailable:
    """A source that cannot be observed now, counted and told."""
    AWAY.labels(key if key.startswith("core/") else "plugin", why).inc()
    log.warning("source unavailable", extra={"key": key, "why": why, "reason": reason})
    return Unavailable(key=key, reason=reason, why=why, required=required)
