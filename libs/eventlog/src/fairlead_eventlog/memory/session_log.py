"""Session logs and shards in memory."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence

from fairlead_eventlog.errors import AppendConflict, CommitTooLarge
from fairlead_eventlog.memory.commits import UnreadableCommit, parse_entry, require_readable
from fairlead_eventlog.ports import (
    START,
    CommitPage,
    Head,
    LogEntry,
    StoredCommit,
)
from fairlead_eventlog.streams import COMMIT_BYTES_MAX
from fairlead_schema import subjects
from fairlead_schema.ids import CommitId
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import SHARDS, Address

BATCH = 500


class MemoryLog:
    """Session logs and shards over lists of entries."""

    def __init__(self) -> None:
        self.entries: tuple[list[LogEntry], ...] = tuple([] for _ in range(SHARDS))
        self._sessions: defaultdict[Address, list[StoredCommit | UnreadableCommit]] = defaultdict(
            list
        )
        self._moved = asyncio.Condition()

    async def append(
        self, at: Address, commit_id: CommitId, drafts: tuple[Draft, ...], *, after: Head
    ) -> StoredCommit:
        commits = self._sessions[at]
        current = commits[-1].position if commits else 0
        if current != after.position:
            mine = (
                one
                for one in commits
                if isinstance(one, StoredCommit) and one.commit.id == commit_id
            )
            own = next(mine, None)
            if own is not None:
                return own
            raise AppendConflict(at, expected=after.position, actual=current)
        payload = encode(Commit(commit_id, record(drafts, after=after.seq)))
        if len(payload) > COMMIT_BYTES_MAX:
            raise CommitTooLarge(at, len(payload), COMMIT_BYTES_MAX)
        return require_readable(await self.append_raw(at, payload))

    async def append_raw(self, at: Address, payload: bytes) -> StoredCommit | UnreadableCommit:
        """Store bytes as they are, the way a foreign or newer writer might, readable or not."""
        entries = self.entries[subjects.shard(at.session_id)]
        entry = LogEntry(entries[-1].position + 1 if entries else 1, at, payload)
        entries.append(entry)
        planted = parse_entry(entry)
        self._sessions[at].append(planted)
        async with self._moved:
            self._moved.notify_all()
        return planted

    async def read(self, at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        rest = [item for item in self._sessions[at] if item.position > after.position]
        strange = (i for i, item in enumerate(rest) if isinstance(item, UnreadableCommit))
        # What cannot be read is not hidden: whoever has read all before it is told.
        end = min(limit, next(strange, limit) or 1)
        return CommitPage(tuple(require_readable(item) for item in rest[:end]), len(rest) > end)

    async def locate(self, at: Address, seq: int) -> Head:
        heads = (
            item.head for item in reversed(self._sessions[at]) if isinstance(item, StoredCommit)
        )
        return next((head for head in heads if head.seq <= seq), START)

    async def head(self, at: Address) -> Head:
        commits = self._sessions[at]
        last = require_readable(commits[-1]) if commits else None
        return START if last is None or last.is_purge else last.head

    async def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        seen = await self.locate(at, after)
        while True:
            page = await self.read(at, after=seen)
            for stored in page.commits:
                seen = stored.head
                if seen.seq > after:
                    yield stored
            async with self._moved:
                if not (await self.read(at, after=seen, limit=1)).commits:
                    await self._moved.wait()

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        kept = [one for one in self._sessions[at] if before is not None and one.position >= before]
        positions = {one.position for one in kept}
        entries = self.entries[subjects.shard(at.session_id)]
        entries[:] = [one for one in entries if one.at != at or one.position in positions]
        self._sessions[at] = kept

    async def follow(
        self, shard: int, *, after: int, reader: str = "projector"
    ) -> AsyncIterator[Sequence[LogEntry]]:
        assert reader
        while True:
            batch = [entry for entry in self.entries[shard] if entry.position > after][:BATCH]
            if batch:
                after = batch[-1].position
                yield batch
                continue
            async with self._moved:
                if await self.last_position(shard) == after:
                    await self._moved.wait()

    async def last_position(self, shard: int) -> int:
        entries = self.entries[shard]
        return entries[-1].position if entries else 0
