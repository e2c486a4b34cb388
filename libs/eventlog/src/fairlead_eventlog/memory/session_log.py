"""Session logs and shards in memory."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

from fairlead_eventlog.errors import AppendConflict, CommitTooLarge
from fairlead_eventlog.memory.commits import UnreadableCommit, parse_entry, require_readable
from fairlead_eventlog.memory.registers import MemoryLogStatus
from fairlead_eventlog.ports import (
    BATCH_BYTES,
    START,
    CommitPage,
    EntryPage,
    Head,
    LogEntry,
    StoredCommit,
)
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.commit_order import CommitOrder
from fairlead_eventlog.status.log_status import LogStatusRegister, require_finalised, require_level
from fairlead_eventlog.streams import COMMIT_BYTES_MAX
from fairlead_schema import subjects
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import SHARDS, Address
from fairlead_schema.transfer.checksum import add_checksum

BATCH = 500

Receive: TypeAlias = Callable[[CommitHint | None], None]


class MemoryLog:
    """Session logs and shards over lists of entries."""

    def __init__(self, status: LogStatusRegister | None = None) -> None:
        self._status = status or MemoryLogStatus()
        self.entries: tuple[list[LogEntry], ...] = tuple([] for _ in range(SHARDS))
        self._sessions: defaultdict[Address, list[StoredCommit | UnreadableCommit]] = defaultdict(
            list
        )
        self._appended = asyncio.Condition()
        self._readers: dict[tuple[int, str], int] = {}
        self.listeners: defaultdict[Address, list[Receive]] = defaultdict(list)
        self.announce: Callable[[Address, CommitHint], None] = lambda _at, _commit: None

    async def append(
        self,
        at: Address,
        commit_id: CommitId,
        drafts: tuple[Draft, ...],
        *,
        after: Head,
        by: PrincipalName | None = None,
    ) -> StoredCommit:
        require_finalised(drafts, self._status.current.level)
        commits = self._sessions[at]
        current = await self.last_commit_position(at)
        if current != after.position:
            for stored in commits:
                if isinstance(stored, StoredCommit) and stored.commit.id == commit_id:
                    return stored
            raise AppendConflict(at, expected=after.position, actual=current)
        commit = Commit(commit_id, record(drafts, after=after.seq, by=by))
        payload = add_checksum(at, encode(commit))
        if len(payload) > COMMIT_BYTES_MAX:
            raise CommitTooLarge(at, len(payload), COMMIT_BYTES_MAX)
        return require_readable(await self.append_raw(at, payload))

    async def restore(
        self, at: Address, commit: Commit, payload: bytes, *, after: Head
    ) -> StoredCommit:
        require_level(commit, self._status.current.level)
        current = await self.last_commit_position(at)
        if current != after.position:
            for stored in self._sessions[at]:
                if isinstance(stored, StoredCommit) and stored.commit == commit:
                    return stored
            raise AppendConflict(at, expected=after.position, actual=current)
        return require_readable(await self.append_raw(at, add_checksum(at, payload)))

    async def append_raw(self, at: Address, payload: bytes) -> StoredCommit | UnreadableCommit:
        """Append bytes as they are, readable or not, as a newer version of a writer might."""
        entries = self.entries[subjects.shard(at.session_id)]
        entry = LogEntry(entries[-1].position + 1 if entries else 1, at, payload)
        entries.append(entry)
        commit = parse_entry(entry)
        previous = await self.last_commit_position(at)
        self._sessions[at].append(commit)
        hint = CommitHint(entry.position, previous, payload)
        for receive in tuple(self.listeners[at]):
            receive(hint)
        self.announce(at, hint)
        async with self._appended:
            self._appended.notify_all()
        return commit

    def parse_again(self, at: Address) -> None:
        """Parse the stored commits of a session again, as a process of another release does."""
        entries = self.entries[subjects.shard(at.session_id)]
        self._sessions[at] = [parse_entry(entry) for entry in entries if entry.at == at]

    async def last_commit_position(self, at: Address) -> int:
        commits = self._sessions[at]
        return commits[-1].position if commits else 0

    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        # This log has one replica, which never lags: it reads as far as there is something.
        assert reach >= 0
        rest = [item for item in self._sessions[at] if item.position > after.position]
        unreadable = (i for i, item in enumerate(rest) if isinstance(item, UnreadableCommit))
        # A page ends before an unreadable commit. A page that starts with one raises its error.
        end = min(limit, next(unreadable, limit) or 1)
        return CommitPage(tuple(require_readable(item) for item in rest[:end]), len(rest) > end)

    async def read_entries(
        self, at: Address, *, after: int, limit: int = 500, reach: int = 0
    ) -> EntryPage:
        assert reach >= 0
        entries = [entry async for entry in self.session_entries(at, after=after)]
        return EntryPage(tuple(entries[:limit]), len(entries) > limit)

    async def locate(self, at: Address, seq: int) -> Head:
        heads = (
            item.head for item in reversed(self._sessions[at]) if isinstance(item, StoredCommit)
        )
        return next((head for head in heads if head.seq <= seq), START)

    async def head(self, at: Address) -> Head:
        commits = self._sessions[at]
        last = require_readable(commits[-1]) if commits else None
        return START if last is None or last.is_purge else last.head

    async def end(self, at: Address) -> Head:
        last = self._sessions[at][-1] if self._sessions[at] else None
        if last is None or (isinstance(last, StoredCommit) and last.is_purge):
            return START
        return last.head

    async def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        order = CommitOrder(self, at, await self.locate(at, after))
        while True:
            page = await self.read(at, after=order.head)
            for stored in page.commits:
                is_news = await order.is_news(stored, after=after)
                if await order.accept(stored) and is_news:
                    yield stored
            async with self._appended:
                if not (await self.read(at, after=order.head, limit=1)).commits:
                    await self._appended.wait()

    async def listen(self, at: Address, receive: Receive) -> Callable[[], None]:
        self.listeners[at].append(receive)
        return lambda: self.listeners[at].remove(receive)

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        commits = self._sessions[at]
        rest = [item for item in commits if before is not None and item.position >= before]
        positions = {item.position for item in rest}
        entries = self.entries[subjects.shard(at.session_id)]
        entries[:] = [entry for entry in entries if entry.at != at or entry.position in positions]
        self._sessions[at] = rest

    async def follow(
        self, shard: int, *, after: int, reader: str = "projector", bytes_max: int = BATCH_BYTES
    ) -> AsyncIterator[Sequence[LogEntry]]:
        assert reader
        while True:
            self._readers[shard, reader] = after
            waiting = [entry for entry in self.entries[shard] if entry.position > after][:BATCH]
            sizes = accumulate(len(entry.payload) for entry in waiting)
            fitting = sum(1 for size in sizes if size <= bytes_max)
            batch = waiting[: max(1, fitting)]
            if batch:
                after = batch[-1].position
                yield batch
                continue
            async with self._appended:
                if await self.last_position(shard) <= after:
                    await self._appended.wait()

    async def forget_reader(self, shard: int, reader: str) -> None:
        assert 0 <= shard < len(self.entries)
        self._readers.pop((shard, reader), None)

    async def reader_position(self, shard: int, reader: str) -> int | None:
        return self._readers.get((shard, reader))

    async def session_entries(self, at: Address, *, after: int) -> AsyncIterator[LogEntry]:
        for entry in tuple(self.entries[subjects.shard(at.session_id)]):
            if entry.at == at and entry.position > after:
                yield entry

    async def entry_at(self, shard: int, position: int) -> LogEntry | None:
        return next((e for e in self.entries[shard] if e.position == position), None)

    async def next_position(self, shard: int, *, after: int) -> int | None:
        return next((e.position for e in self.entries[shard] if e.position > after), None)

    async def last_position(self, shard: int) -> int:
        entries = self.entries[shard]
        return entries[-1].position if entries else 0
