"""Reads sources beside the event loop: in a thread, for a bounded time, and never twice at once."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from fairlead_schema.context import Observation, UnavailableKind, UnavailableSource
from fairlead_tools.context.sources.files import Unreadable
from fairlead_tools.metrics import SOURCES_UNAVAILABLE

log = logging.getLogger(__name__)

THREADS_MAX: Final = 32

ReadSource: TypeAlias = Callable[[], Observation | None]
"""Observes a source; None when there is nothing of the kind."""


class _ReadRun:
    """One thread's way through some sources, and how far it has come."""

    def __init__(self, reads: Mapping[str, ReadSource]) -> None:
        self._reads = reads
        self.found: dict[str, Observation | None] = {}
        self.at: str | None = None
        self.abandoned = False

    def run(self) -> None:
        for key, read in self._reads.items():
            self.at = key
            self.found[key] = _read_source(key, read)
            if self.abandoned:
                return


class SourceReader:
    """Reads that may hang: all of a place in one thread, which is left alone where it stands.

    A source that hangs is not read again until its thread has come back; the others are.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="observe")
        self._hung: set[tuple[str, str]] = set()

    async def sources(
        self, place: str, reads: Mapping[str, ReadSource]
    ) -> Mapping[str, Observation | None]:
        """What the sources of a place say now. Whatever goes wrong makes one unavailable, not gone."""
        hop = _ReadRun({key: read for key, read in reads.items() if (key, place) not in self._hung})
        running = asyncio.get_running_loop().run_in_executor(self._threads, hop.run)
        await asyncio.wait({running}, timeout=self._timeout_s)
        if not running.done():
            hop.abandoned = True
            self._leave(place, hop.at, running)
        found = dict(hop.found)
        late = f"not read within {self._timeout_s:g} s"
        return {
            key: found[key] if key in found else unavailable(key, "timeout", late) for key in reads
        }

    def _leave(self, place: str, key: str | None, running: asyncio.Future[None]) -> None:
        """Remember where a thread stands; one that never began, for want of threads, is called off."""
        if key is None:
            running.cancel()
            return
        self._hung.add((key, place))
        running.add_done_callback(lambda _over: self._hung.discard((key, place)))


def _read_source(key: str, read: ReadSource) -> Observation | None:
    try:
        return read()
    except Unreadable as error:
        told = unavailable(key, error.why, error.reason)
        return told.model_copy(update={"instead": error.instead})
    except OSError as error:
        return unavailable(key, "unreadable", error.strerror or str(error))
    except Exception as error:
        log.exception("source failed", extra={"key": key})
        return unavailable(key, "defect", str(error) or type(error).__name__)


def unavailable(
    key: str, why: UnavailableKind, reason: str, *, required: bool = True
) -> UnavailableSource:
    """A source that cannot be observed now, counted and told."""
    SOURCES_UNAVAILABLE.labels(key if key.startswith("core/") else "plugin", why).inc()
    log.warning("source unavailable", extra={"key": key, "why": why, "reason": reason})
    return UnavailableSource(key=key, reason=reason, why=why, required=required)
