"""Keeps room in a limited log for purges: when the rest is used, only a purge may still be written.

A full log refuses every commit. Without this reserve it would also refuse the purge that makes room.
"""

import asyncio
import time
from collections import Counter
from typing import Final

from fairlead_eventlog.condition.stream_sizes import StreamSize, read_size
from fairlead_eventlog.errors import LogError, LogFull, SubjectRefused
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.streams import log_stream
from fairlead_schema import subjects
from fairlead_schema.record import ENDS_LOG, Draft
from fairlead_schema.subjects import Address

RESERVE_SHARE: Final = 0.05
RESERVE_BYTES_MIN: Final = 64 * 1024
# How old a size may be that decides: of a log without a limit, with one, and near it.
UNLIMITED_S: Final = 60.0
LIMITED_S: Final = 5.0
CLOSE_S: Final = 0.5
CLOSE_SHARE: Final = 0.8


class LogRoom:
    """The room of all shards, as one process knows it. A size is read in the background."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._sizes: dict[str, StreamSize] = {}
        self._read_at: dict[str, float] = {}
        self._added: Counter[str] = Counter()
        """What this process has written since it read the size."""
        self._reading: set[asyncio.Task[None]] = set()
        self._is_refused = False
        """The key of an earlier release may not read sizes. Then the server alone keeps the limit."""

    def require(self, at: Address, drafts: tuple[Draft, ...], length: int) -> None:
        """Raise LogFull if a commit of this length would use the reserve. What frees bytes may."""
        stream = log_stream(subjects.shard(at.session_id))
        size = self._estimate(stream)
        self._refresh(stream, size)
        if size is not None and is_in_reserve(size) and not _frees_bytes(drafts):
            raise LogFull(stream, size.bytes, size.bytes_max)
        self._added[stream] += length

    def _estimate(self, stream: str) -> StreamSize | None:
        """The size that was read, with what this process has written since."""
        size = self._sizes.get(stream)
        if size is None or not size.bytes_max:
            return size  # Nobody asks how large a log without a limit is.
        return size._replace(bytes=size.bytes + self._added[stream])

    def _refresh(self, stream: str, size: StreamSize | None) -> None:
        now = time.monotonic()
        age_s = now - self._read_at.get(stream, -UNLIMITED_S)
        if self._is_refused or age_s < _fresh_s(size, self._added[stream]):
            return
        self._read_at[stream] = now
        task = asyncio.create_task(self._read(stream))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, stream: str) -> None:
        added = self._added[stream]
        try:
            size = await read_size(self._link, stream)
        except SubjectRefused:
            self._is_refused = True
        except LogError:
            return  # The append says why, and the next one reads again.
        else:
            if size is not None:
                self._sizes[stream] = size
                self._added[stream] -= added


def _frees_bytes(drafts: tuple[Draft, ...]) -> bool:
    """Whether the drafts purge a session, or mark it as stored in a file."""
    return any(type(draft.event) in ENDS_LOG for draft in drafts)


def is_in_reserve(size: StreamSize) -> bool:
    """Whether only the reserve for purges is left of a log."""
    if not size.bytes_max:
        return False
    reserve = max(RESERVE_BYTES_MIN, int(size.bytes_max * RESERVE_SHARE))
    return size.bytes > size.bytes_max - reserve


def _fresh_s(size: StreamSize | None, added: int) -> float:
    """How old a size may be. Whoever writes much looks often."""
    if size is None:
        return CLOSE_S
    if not size.bytes_max:
        return UNLIMITED_S
    is_close = size.share >= CLOSE_SHARE or added >= size.bytes_max * RESERVE_SHARE / 5
    return CLOSE_S if is_close else LIMITED_S
