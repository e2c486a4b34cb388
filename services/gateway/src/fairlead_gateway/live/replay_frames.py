"""Replays the log of a session as frames, without models of its events.

A page of the log is read while the page before it is encoded and written.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from fairlead_eventlog.ports import EntryPage, Head, LogEntry, SessionLog
from fairlead_eventlog.replicas.commit_order import CommitOrder
from fairlead_eventlog.replicas.contiguity import decode_next
from fairlead_gateway.http.sse import CHUNK_BYTES_MAX, auto_close
from fairlead_gateway.live.frames import encode_commit
from fairlead_gateway.log.envelopes import EnvelopeTranslator
from fairlead_schema.errors import SessionUnreadable
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait

ENTRIES_PER_READ: Final = 128


class ReplayedFrames(NamedTuple):
    """The frames of some commits, joined, and the last event of these commits."""

    frames: bytes
    seq: int


class LogReplay:
    """One replay of a session, from a head of its log on."""

    def __init__(
        self, log: SessionLog, at: Address, translator: EnvelopeTranslator, *, start: Head
    ) -> None:
        self._log = log
        self._at = at
        self._translator = translator
        self._order = CommitOrder(log, at, start)

    async def read(self, *, after: int, reach: int) -> AsyncIterator[ReplayedFrames]:
        """The visible events after seq `after`, at least up to position `reach`, without repeats.

        Raises SessionUnreadable where a commit cannot be read or cannot follow.
        """
        joined: list[bytes] = []
        size = 0
        try:
            async with auto_close(self._read_pages(reach)) as pages:
                async for page in pages:
                    for entry in page.entries:
                        frames = await self._encode(entry, after=after)
                        joined.append(frames)
                        size += len(frames)
                        if size >= CHUNK_BYTES_MAX:
                            yield self._take(joined)
                            size = 0
                    # The client has what was read before the next page comes.
                    yield self._take(joined)
                    size = 0
        except RecordError as error:
            yield self._take(joined)
            raise SessionUnreadable(self._order.head.seq + 1, str(error)) from error

    def _take(self, joined: list[bytes]) -> ReplayedFrames:
        frames = b"".join(joined)
        joined.clear()
        return ReplayedFrames(frames, self._order.head.seq)

    async def _encode(self, entry: LogEntry, *, after: int) -> bytes:
        """The frames of one entry; nothing if it repeats an earlier one. Raises RecordError."""
        commit = await decode_next(self._order, entry)
        if commit is None:
            return b""
        return (await encode_commit(self._translator, commit, after=after)).all

    async def _read_pages(self, reach: int) -> AsyncIterator[EntryPage]:
        async def read(after: int) -> EntryPage:
            return await self._log.read_entries(
                self._at, after=after, limit=ENTRIES_PER_READ, reach=reach
            )

        position, coming = self._order.head.position, None
        page = await read(position)
        try:
            while page.entries or page.more:
                position = page.entries[-1].position if page.entries else position
                coming = asyncio.ensure_future(read(position)) if page.more else None
                yield page
                if coming is None:
                    return
                page = await coming
        finally:
            if coming is not None:
                await cancel_and_wait(coming)
