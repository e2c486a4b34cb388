"""What was read of a location, kept while a watch shows that nothing of it has changed."""

import asyncio
import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fairlead_schema.context import Observation, UnavailableSource
from fairlead_tools.context.reader import AfterRead
from fairlead_tools.context.watch.file_watcher import CannotWatch, FileWatcher, Watch
from fairlead_tools.context.watch.looked_paths import LookedPaths
from fairlead_tools.metrics import LOCATION_LOOKS, WATCHES

log = logging.getLogger(__name__)

READS_MAX: Final = 1024
IDLE_S: Final = 300.0
"""A location that nobody looked at for so long is no longer watched."""
TRUST_S: Final = 10.0
"""So long a watch is believed without a look at the disk. A memory map and a new mount make no news."""
CLEAN_S: Final = 5.0

ReadSources: TypeAlias = Mapping[str, Observation | None]
"""The sources that read the disk, by key; None for a source that the location does not have."""
Read: TypeAlias = Callable[[AfterRead], Awaitable[ReadSources]]


@dataclass(slots=True)
class _KeptRead:
    sources: ReadSources
    inputs: object
    watch: Watch
    is_sure: bool
    """Whether the watch was there before the read began. Else a change may have come in between."""
    read_at: float
    used_at: float


class WarmReads:
    """The reads of the locations that this process serves, by question."""

    def __init__(self, watches_max: int) -> None:
        self._watches_max = watches_max
        self._kept: OrderedDict[Hashable, _KeptRead] = OrderedDict()
        self._ended: list[Watch] = []
        self._watcher: FileWatcher | None = None
        self._opening = threading.Lock()
        self._cleaning: asyncio.TimerHandle | None = None
        self._reported: set[str] = set()

    async def look(self, question: Hashable, inputs: object, read: Read) -> ReadSources:
        """The sources, from memory if nothing has changed since they were read. Else `read` is asked.

        `inputs` are what the result depends on beside the disk.
        """
        if self._watches_max <= 0:
            return await read(lambda _looked: None)
        self._drain()
        kept, now = self._kept.get(question), time.monotonic()
        if kept is not None and self._is_warm(kept, inputs, now):
            kept.used_at = now
            self._kept.move_to_end(question)
            LOCATION_LOOKS.labels("warm").inc()
            return kept.sources
        LOCATION_LOOKS.labels("read").inc()
        before = None if kept is None or kept.watch.changed else kept.watch
        found: list[Watch] = []
        sources = await read(lambda looked: self._watch(looked, before, found))
        self._keep(question, inputs, sources, before, found[0] if found else None)
        return sources

    def close(self) -> None:
        """End all watches."""
        if self._cleaning is not None:
            self._cleaning.cancel()
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def _is_warm(self, kept: _KeptRead, inputs: object, now: float) -> bool:
        fresh = now - kept.read_at < TRUST_S
        return kept.is_sure and fresh and not kept.watch.changed and kept.inputs == inputs

    def _watch(self, looked: LookedPaths, before: Watch | None, found: list[Watch]) -> None:
        """Watch what was looked at, in the thread of the read: asking the disk may take long."""
        if looked.unwatchable is not None:
            self._report(looked.unwatchable)
            return
        if before is not None and looked.paths <= before.paths:
            found.append(before)
            return
        try:
            watch = self._open_watcher().watch(looked.paths)
        except CannotWatch as error:
            self._report(str(error))
        else:
            # If nobody waits for this read any more, the next cleaning ends the watch.
            self._ended.append(watch)
            found.append(watch)

    def _open_watcher(self) -> FileWatcher:
        """The one watcher of this process. Raises CannotWatch."""
        with self._opening:
            if self._watcher is None:
                self._watcher = FileWatcher(self._watches_max)
                weakref.finalize(self, self._watcher.close)
            return self._watcher

    def _keep(
        self,
        question: Hashable,
        inputs: object,
        sources: ReadSources,
        before: Watch | None,
        watch: Watch | None,
    ) -> None:
        self._drain()
        earlier = self._kept.pop(question, None)
        if earlier is not None and earlier.watch is not watch:
            self._ended.append(earlier.watch)
        if watch is None or watch.ended:
            return
        if any(isinstance(source, UnavailableSource) for source in sources.values()):
            # Unavailable is no result: the next look reads again.
            self._ended.append(watch)
            return
        now = time.monotonic()
        is_sure = watch is before and not watch.changed
        self._kept[question] = _KeptRead(sources, inputs, watch, is_sure, now, now)
        if len(self._kept) > READS_MAX:
            self._ended.append(self._kept.popitem(last=False)[1].watch)
        if self._cleaning is None:
            self._clean_later()

    def _clean_later(self) -> None:
        self._cleaning = asyncio.get_running_loop().call_later(CLEAN_S, self._clean_again)

    def _clean_again(self) -> None:
        """End the watches of idle locations, again and again until there is none."""
        self.clean(time.monotonic())
        self._cleaning = None
        if self._kept or self._ended:
            self._clean_later()

    def clean(self, now: float) -> None:
        """End the watches that nobody needs, and empty the kernel's queue."""
        self._drain()
        idle = [key for key, kept in self._kept.items() if now - kept.used_at >= IDLE_S]
        self._ended += [self._kept.pop(key).watch for key in idle]
        watcher = self._watcher
        if watcher is None:
            return
        used = {kept.watch for kept in self._kept.values()}
        ended, self._ended = set(self._ended) - used, []
        self._ended += [watch for watch in ended if not watcher.unwatch(watch)]
        WATCHES.set(watcher.count)

    def _drain(self) -> None:
        if self._watcher is not None:
            self._watcher.drain()

    def _report(self, reason: str) -> None:
        """Say once why a location is not watched. Reading it each time is correct, and slower."""
        if reason not in self._reported and len(self._reported) < READS_MAX:
            self._reported.add(reason)
            extra = {"reason": reason}
            log.info("location not watched: each look reads its files", extra=extra)
