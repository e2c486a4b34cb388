"""Reads sources in threads, for a bounded time, and no source twice at once."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from fairlead_schema.context import Observation, UnavailableKind, UnavailableSource
from fairlead_tools.context.sources.files import Unreadable
from fairlead_tools.context.watch.looked_paths import LookedPaths, record_paths
from fairlead_tools.metrics import SOURCES_UNAVAILABLE

log = logging.getLogger(__name__)

THREADS_MAX: Final = 32

ReadSource: TypeAlias = Callable[[], Observation | None]
"""Observes a source; None when the location has none."""


AfterRead: TypeAlias = Callable[[LookedPaths], None]
"""Gets the paths that a read looked at."""


class _ReadRun:
    """The work of one thread: it reads some sources, one after the other."""

    def __init__(self, reads: Mapping[str, ReadSource], after: AfterRead) -> None:
        self._reads = reads
        self._after = after
        self.results: dict[str, Observation | None] = {}
        self.current: str | None = None
        self.abandoned = False

    def run(self) -> None:
        with record_paths() as looked:
            for key, read in self._reads.items():
                self.current = key
                self.results[key] = _read_source(key, read)
                if self.abandoned:
                    return
        self.current = None
        self._after(looked)


class SourceReader:
    """Reads the sources of a location in one thread, because a read may hang.

    A source that hangs is not read again until its thread returns; the other sources are.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="observe")
        self._hung: set[tuple[str, str]] = set()

    async def read_sources(
        self,
        directory: str,
        reads: Mapping[str, ReadSource],
        after: AfterRead = lambda _looked: None,
    ) -> Mapping[str, Observation | None]:
        """Observe the sources of a directory. A source that fails is unavailable, not removed.

        `after` gets the paths of a read that was complete, in its thread.
        """
        run = _ReadRun(
            {key: read for key, read in reads.items() if (key, directory) not in self._hung}, after
        )
        running = asyncio.get_running_loop().run_in_executor(self._threads, run.run)
        await asyncio.wait({running}, timeout=self._timeout_s)
        if not running.done():
            run.abandoned = True
            self._remember_hung(directory, run.current, running)
        results = dict(run.results)
        late = f"not read within {self._timeout_s:g} s"
        return {
            key: results[key] if key in results else unavailable(key, "timeout", late)
            for key in reads
        }

    def _remember_hung(
        self, directory: str, key: str | None, running: asyncio.Future[None]
    ) -> None:
        """Remember the source that hangs. A run that no thread has taken yet is cancelled."""
        if key is None:
            running.cancel()
            return
        self._hung.add((key, directory))
        running.add_done_callback(lambda _done: self._hung.discard((key, directory)))


def _read_source(key: str, read: ReadSource) -> Observation | None:
    try:
        return read()
    except Unreadable as error:
        observation = unavailable(key, error.why, error.reason)
        return observation.model_copy(update={"instead": error.instead})
    except OSError as error:
        return unavailable(key, "unreadable", error.strerror or str(error))
    except Exception as error:
        log.exception("context source crashed: it counts as unavailable", extra={"key": key})
        return unavailable(key, "defect", str(error) or type(error).__name__)


def unavailable(
    key: str, why: UnavailableKind, reason: str, *, required: bool = True
) -> UnavailableSource:
    """A source that cannot be observed now. It is counted and logged."""
    SOURCES_UNAVAILABLE.labels(key if key.startswith("core/") else "plugin", why).inc()
    log.warning(
        "context source unavailable: the model keeps what it knows of it",
        extra={"key": key, "why": why, "reason": reason},
    )
    return UnavailableSource(key=key, reason=reason, why=why, required=required)
