"""Writes the rows of several shards in common transactions, each shard in order and with its checkpoint.

A shard whose checkpoint another writer moved takes no part. The others lose nothing by it.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from psycopg import Error

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_projector import metrics
from fairlead_projector.errors import ShardFenced
from fairlead_projector.projection import log_entries, row_changes, tenant_totals
from fairlead_projector.projection.batches import is_refused, split_entries
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.repeats import mark_repeats
from fairlead_projector.projection.log_entries import DecodedEntry
from fairlead_projector.projection.purge import erase, erase_stored
from fairlead_projector.projection.row_changes import BrokenEntry, RowChanges
from fairlead_projector.projection.store import CheckpointMove, TableStore
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

Held: TypeAlias = Mapping[int, HeldShard]
"""The shards of a write by their number."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The commits and bytes of one transaction."""

    commits_max: int = 500
    bytes_max: int = BATCH_BYTES


class GroupWriter:
    """Applies the entries of several shards, from their checkpoints on."""

    def __init__(
        self, store: TableStore, eventlog: EventLog, limits: BatchLimits | None = None
    ) -> None:
        self.store = store
        self.eventlog = eventlog
        self._limits = limits or BatchLimits()

    async def write(
        self, gathered: Mapping[HeldShard, Sequence[LogEntry]]
    ) -> dict[HeldShard, Exception]:
        """Apply the entries after each checkpoint, and skip earlier ones.

        Returns the shards that failed alone, as far as they came. Raises what stops all of them.
        """
        write = _GroupWrite(self, {held.shard: held for held in gathered})
        # A shard with few entries need not wait for one that is far behind.
        by_size = sorted(gathered.items(), key=lambda item: len(item[1]))
        entries = [
            entry for held, read in by_size for entry in read if entry.position > held.mark.position
        ]
        for batch in split_entries(
            entries, commits_max=self._limits.commits_max, bytes_max=self._limits.bytes_max
        ):
            decoded = [log_entries.decode_entry(entry) for entry in batch]
            for part in split_after_reverts(decoded):
                await write.write_batch(part)
        return {write.held[shard]: error for shard, error in write.failed.items()}

    async def drop_session(self, held: HeldShard, at: Address) -> None:
        """Remove the rows of a session, and what it adds to totals. The log keeps the session."""
        row = (await self.store.load([at]))[at].row
        changes = RowChanges(
            purges={at: row.position},
            creators={at: row.created_by},
            shares_before={at: tenant_totals.share_of(row)},
            shares_after_purge={at: tenant_totals.NOTHING},
        )
        async with self.store.transaction():
            await self._require(held)
            await self.store.write(changes)
        self.store.remember({}, changes)

    async def apply_again(self, held: HeldShard, entries: Sequence[LogEntry]) -> None:
        """Apply entries before the checkpoint, which stays where it is. Raises ShardFenced."""
        decoded = [log_entries.decode_entry(entry) for entry in entries]
        for batch in split_after_reverts(decoded):
            async with self.store.transaction():
                await self._require(held)
                await self.apply({held.shard: held}, batch)

    async def apply(self, held: Held, batch: Sequence[DecodedEntry]) -> int:
        """Write the rows of a batch, inside a transaction. Returns the number of its events."""
        addresses = [decoded.entry.at for decoded in batch]
        sessions = await self.store.load(addresses)
        await self.store.load_messages(sessions, row_changes.missing_messages(sessions, batch))
        seqs = {at: session.row.seq for at, session in sessions.items()}
        batch = await mark_repeats(self.eventlog.log, batch, seqs)
        changes = row_changes.fold_batch(sessions, batch)
        await self.store.write(changes)
        await self._add_dead_letters(held, changes.broken)
        await erase(self.eventlog, changes.purges)
        await erase_stored(self.eventlog, changes.stores)
        # If the transaction fails after all, the whole cache goes.
        self.store.remember(sessions, changes)
        return len(changes.events)

    async def _require(self, held: HeldShard) -> None:
        if not await self.store.advance({held.shard: held.stay()}):
            raise ShardFenced(held.shard, held.mark.position)

    async def _add_dead_letters(self, held: Held, broken: Sequence[BrokenEntry]) -> None:
        """Store broken entries. This runs inside the transaction, so only the owner of a shard does it."""
        for entry, reason, is_newer in broken:
            dead_lettered = held[subjects.shard(entry.at.session_id)].dead_lettered
            if entry.position in dead_lettered:
                continue
            extra = {"session_id": entry.at.session_id, "reason": reason}
            if is_newer:
                log.warning("session of a newer release: its rows wait for an upgrade", extra=extra)
                continue
            log.error("session broken: its projection stops here", extra=extra)
            metrics.BROKEN.inc()
            subject = subjects.log(entry.at)
            await self.eventlog.dead_letters.add("projector", subject, entry.payload, reason)
            dead_lettered.add(entry.position)


class _GroupWrite:
    """One write of several shards, with the shards that have failed so far."""

    def __init__(self, writer: GroupWriter, held: Held) -> None:
        self._writer = writer
        self._store = writer.store
        self.held = held
        self.failed: dict[int, Exception] = {}

    async def write_batch(self, batch: Sequence[DecodedEntry]) -> None:
        """Write a batch in one transaction, or in parts if one transaction cannot have it."""
        batch = [decoded for decoded in batch if _shard(decoded) not in self.failed]
        if not batch:
            return
        try:
            await self._commit(batch)
        except Error as error:
            self._store.forget()
            if not is_refused(error, alone=len(batch) == 1):
                raise
            await self._write_parts(batch, error)
        except Exception as error:  # noqa: BLE001 - it stops the shards that it comes from
            self._store.forget()
            await self._write_shards(batch, error)

    async def _commit(self, batch: Sequence[DecodedEntry]) -> None:
        started = time.perf_counter()
        moves = self._moves(batch)
        async with self._store.transaction():
            moved = await self._store.advance(moves)
            ours = [decoded for decoded in batch if _shard(decoded) in moved]
            events = await self._writer.apply(self.held, ours) if ours else 0
        for shard, move in moves.items():
            if shard in moved:
                self.held[shard].mark = move.mark
            else:
                self._store.forget_shard(shard)
                self.failed[shard] = ShardFenced(shard, move.after)
        metrics.EVENTS.inc(events)
        metrics.BATCH.observe(len(ours))
        metrics.APPLY.observe(time.perf_counter() - started)

    def _moves(self, batch: Iterable[DecodedEntry]) -> dict[int, CheckpointMove]:
        last = {_shard(decoded): decoded.entry for decoded in batch}
        return {shard: self.held[shard].move_to(entry) for shard, entry in last.items()}

    async def _write_parts(self, batch: Sequence[DecodedEntry], error: Error) -> None:
        """Find the commit that Postgres refuses, because only its session may stop."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self.write_batch(batch[:middle])
            await self.write_batch(batch[middle:])
        elif batch[0].reason is None:
            await self.write_batch(
                [log_entries.unreadable_entry(batch[0].entry, f"not storable: {error}")]
            )
        else:
            raise error

    async def _write_shards(self, batch: Sequence[DecodedEntry], error: Exception) -> None:
        """Write each shard alone, because an error of the log concerns only the shard that it is in."""
        shards = dict.fromkeys(map(_shard, batch))
        if len(shards) == 1:
            self.failed |= dict.fromkeys(shards, error)
            return
        for shard in shards:
            await self.write_batch([decoded for decoded in batch if _shard(decoded) == shard])


def split_after_reverts(batch: Sequence[DecodedEntry]) -> Iterator[Sequence[DecodedEntry]]:
    """A batch in parts that end with a revert, because the store loads a reverted session again."""
    start = 0
    for index, decoded in enumerate(batch, start=1):
        if index == len(batch) or row_changes.is_revert(decoded):
            yield batch[start:index]
            start = index


def _shard(decoded: DecodedEntry) -> int:
    return subjects.shard(decoded.entry.at.session_id)
