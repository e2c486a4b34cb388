"""The shards of this process: one connection for all, and one transaction after another.

A single entry is written at once when nothing was written just before. Otherwise a transaction gathers
what all shards read until it is due, because its fixed cost is the largest part of its cost.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, NamedTuple, Self

from psycopg import Error, OperationalError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry
from fairlead_projector import database
from fairlead_projector.database import Connection, query
from fairlead_projector.errors import LogRestored, ShardFenced
from fairlead_projector.migrations import ensure_migrated
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.writer import BatchLimits, GroupWriter
from fairlead_projector.projection.recent_sessions import CacheLimits
from fairlead_projector.projection.store import TableStore
from fairlead_projector.shard_balance import ShardShare
from fairlead_projector.shard_reader import ShardReader
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait

GATHER_S: Final = 0.05
"""Between the beginnings of two transactions, unless a reader is full."""
LOCK_RETRY_S: Final = 1.0
# Shards that are quiet at the same time look at their checkpoints together.
LOOK_S: Final = 1.0


class ShardGroup:
    """The shards that this process holds. The checkpoints fence it, and the locks only divide the work."""

    def __init__(
        self,
        dsn: str,
        eventlog: EventLog,
        limits: BatchLimits | None = None,
        *,
        gather_s: float = GATHER_S,
        synced: bool = True,
        cache: CacheLimits = CacheLimits(),  # noqa: B008 - a frozen value
    ) -> None:
        self.dsn = dsn
        self.eventlog = eventlog
        self._limits = limits
        self._gather_s = gather_s
        # Whether each transaction waits for the disk. One that does not is lost with its checkpoint.
        self._synced = synced
        self._cache = cache
        self._tables: _Tables | None = None
        self._in_use = asyncio.Lock()
        self._readers: dict[HeldShard, ShardReader] = {}
        self._waiting: dict[HeldShard, asyncio.Future[None]] = {}
        self._failed: dict[HeldShard, Exception] = {}
        self._rounds: asyncio.Task[None] | None = None
        self._began = 0.0
        self._full = asyncio.Event()
        self._look: tuple[float, dict[int, int]] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._rounds is not None:
            await cancel_and_wait(self._rounds)
        if self._tables is not None:
            await self._tables.connection.close()

    @asynccontextmanager
    async def hold(
        self,
        shard: int,
        share: ShardShare,
        *,
        lock_retry_s: float = LOCK_RETRY_S,
        on_waiting: Callable[[], None],
    ) -> AsyncIterator[HeldShard]:
        """Wait for the lock of a shard, and hold the shard during the block, from its checkpoint on."""
        while True:
            tables = await self._try_lock(shard, share)
            on_waiting()
            if tables is not None:
                break
            await asyncio.sleep(lock_retry_s)
        held = HeldShard(self.eventlog, shard)
        try:
            with share.hold(shard):
                await held.load_checkpoint(partial(self._use, tables))
                tables.shards.add(held)
                yield held
        except asyncio.CancelledError:
            raise  # The process ends: its connection ends the lock.
        except BaseException:
            await self._leave(held, tables)
            raise
        else:
            await self._leave(held, tables)

    async def write(self, held: HeldShard, reader: ShardReader) -> None:
        """Have what the reader of a shard has read written by the next transaction.

        From now on every transaction takes what this reader has. Raises what stops this shard.
        """
        self._raise_failure(held)
        if not reader.has_entries:
            return  # The last transaction has taken them.
        self._readers[held] = reader
        reader.on_full(self._full.set)
        done = self._waiting[held] = asyncio.get_running_loop().create_future()
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.create_task(self._write_rounds(), name="group commit")
        try:
            await done
            self._raise_failure(held)
        finally:
            if self._waiting.get(held) is done:
                del self._waiting[held]

    async def load_broken(self, held: HeldShard, release: str) -> list[Address]:
        """The sessions of a shard that another release found broken."""
        async with self._use(self._tables_of(held)) as store:
            return await store.load_broken(held.shard, release)

    async def check_fence(self, held: HeldShard) -> None:
        """Raise ShardFenced if another writer moved the checkpoint. For times without new entries."""
        self._raise_failure(held)
        async with self._use(self._tables_of(held)) as store:
            now = time.monotonic()
            if self._look is None or now - self._look[0] > LOOK_S:
                self._look = now, await store.positions()
            _at, positions = self._look
        self._raise_failure(held)
        if positions.get(held.shard) != held.mark.position:
            raise ShardFenced(held.shard, held.mark.position)
        await held.check_log()

    async def _write_rounds(self) -> None:
        while self._waiting:
            await self._gather()
            waiting, self._waiting = self._waiting, {}
            self._began = time.monotonic()
            self._full.clear()
            try:
                failed = await self._write()
            except Exception as error:  # noqa: BLE001 - each shard starts again with the reason
                failed = dict.fromkeys(self._readers, error)
            self._failed |= {held: failed[held] for held in failed if held in self._readers}
            for done in waiting.values():
                if not done.done():
                    done.set_result(None)

    async def _gather(self) -> None:
        if any(reader.is_full for reader in self._readers.values()):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._began + self._gather_s - time.monotonic()):
                await self._full.wait()

    async def _write(self) -> dict[HeldShard, Exception]:
        async with self._in_use:
            tables = self._tables
            failed: dict[HeldShard, Exception] = {}
            gathered: dict[HeldShard, Sequence[LogEntry]] = {}
            for held, reader in self._readers.items():
                try:
                    held.check_incarnation()
                except LogRestored as restored:
                    failed[held] = restored
                    continue
                if tables is None or held not in tables.shards:
                    failed[held] = OperationalError(_LOST)
                elif held not in self._failed and reader.has_entries:
                    gathered[held] = reader.take()
            self._look = None
            if tables is not None and gathered:
                failed |= await tables.writer.write(gathered)
            return failed

    def _raise_failure(self, held: HeldShard) -> None:
        """What failed was taken from its reader, so this shard is never written again."""
        if held in self._failed:
            raise self._failed[held]

    async def _try_lock(self, shard: int, share: ShardShare) -> "_Tables | None":
        async with self._in_use:
            if self._tables is None or self._tables.connection.closed:
                self._tables = await self._open()
            if share.has_room() and await database.try_lock(self._tables.connection, shard):
                return self._tables
            return None

    async def _open(self) -> "_Tables":
        connection = await database.connect(self.dsn)
        try:
            await ensure_migrated(connection)
            if not self._synced:
                await connection.execute(query("commit_without_sync"))
        except BaseException:
            await connection.close()
            raise
        writer = GroupWriter(TableStore(connection, self._cache), self.eventlog, self._limits)
        return _Tables(connection, writer, set())

    @asynccontextmanager
    async def _use(self, tables: "_Tables | None") -> AsyncIterator[TableStore]:
        """Have the connection alone. Raises OperationalError if it is no longer the same."""
        async with self._in_use:
            if tables is None or tables is not self._tables:
                raise OperationalError(_LOST)
            yield tables.writer.store

    async def _leave(self, held: HeldShard, tables: "_Tables") -> None:
        tables.shards.discard(held)
        self._readers.pop(held, None)
        with suppress(Error):
            async with self._use(tables):
                await database.unlock(tables.connection, held.shard)
        self._failed.pop(held, None)

    def _tables_of(self, held: HeldShard) -> "_Tables | None":
        tables = self._tables
        return tables if tables is not None and held in tables.shards else None


class _Tables(NamedTuple):
    """A connection, its writer, and the shards that are locked through it."""

    connection: Connection
    writer: GroupWriter
    shards: set[HeldShard]


_LOST: Final = "the connection of this shard was lost"
