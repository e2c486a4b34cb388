"""Writes the rows of one shard, in order, together with its checkpoint."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence

from psycopg import Error

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry, SessionLog, StoredCommit
from fairlead_eventlog.replicas.commit_order import is_repeat, stands_before
from fairlead_projector import metrics
from fairlead_projector.errors import ShardFenced
from fairlead_projector.projection import log_entries, row_changes, tenant_totals
from fairlead_projector.projection.batches import is_refused
from fairlead_projector.projection.log_entries import DecodedEntry
from fairlead_projector.projection.purge import erase
from fairlead_projector.projection.row_changes import BrokenEntry, RowChanges
from fairlead_projector.projection.store import ShardStore
from fairlead_projector.restore import (
    ReaderMark,
    check_incarnation,
    check_log,
    digest_entry,
    resume_mark,
)
from fairlead_schema import subjects
from fairlead_schema.record import RecordError, decode
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)


class ShardWriter:
    """Applies the entries of one shard in order, from its checkpoint on."""

    def __init__(self, store: ShardStore, eventlog: EventLog, shard: int) -> None:
        self.store = store
        self.eventlog = eventlog
        self.shard = shard
        self._dead_lettered: set[int] = set()
        self.mark = ReaderMark(0)
        """How far the shard is projected."""

    async def load_checkpoint(self) -> None:
        """Load the checkpoint. If the log was restored and ends before it, all rows start again."""
        stored = await self.store.checkpoint()
        self.mark = await resume_mark(self.eventlog, self.shard, stored)
        if self.mark.position < stored.position:
            log.error(
                "log restored: the read models are rebuilt from its beginning",
                extra={"shard": self.shard, "checkpoint": stored.position},
            )
            await self.store.restart(self.mark.incarnation)
            self.mark = await self.store.checkpoint()

    async def check_fence(self) -> None:
        """Raise ShardFenced if another writer moved the checkpoint. For times without new entries."""
        if (await self.store.checkpoint()).position != self.mark.position:
            raise ShardFenced(self.shard, self.mark.position)
        await self.check_log()

    def check_incarnation(self) -> None:
        """Raise LogRestored if this process knows that the log was restored."""
        check_incarnation(self.eventlog, self.shard, self.mark)

    async def check_log(self) -> None:
        """Raise LogRestored if the log is not the one that the rows come from."""
        await check_log(self.eventlog, self.shard, self.mark)

    async def write(self, entries: Sequence[LogEntry]) -> None:
        """Apply the entries after the checkpoint, and skip earlier ones."""
        decoded = [
            log_entries.decode_entry(entry)
            for entry in entries
            if entry.position > self.mark.position
        ]
        for batch in _split_after_reverts(decoded):
            await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[DecodedEntry]) -> None:
        try:
            await self._apply(batch, self._mark_after(batch[-1].entry))
        except Error as error:
            self.store.forget()
            if not is_refused(error, alone=len(batch) == 1):
                raise
            await self._write_parts(batch, error)

    async def _write_parts(self, batch: Sequence[DecodedEntry], error: Error) -> None:
        """Find the commit that Postgres refuses, because only its session may stop."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write_batch(batch[:middle])
            await self._write_batch(batch[middle:])
        elif batch[0].reason is None:
            await self._write_batch(
                [log_entries.unreadable_entry(batch[0].entry, f"not storable: {error}")]
            )
        else:
            raise error

    async def drop_session(self, at: Address) -> None:
        """Remove the rows of a session, and what it adds to totals. The log keeps the session."""
        row = (await self.store.load([at], []))[at].row
        changes = RowChanges(
            purges={at: row.position},
            creators={at: row.created_by},
            shares_before={at: tenant_totals.share_of(row)},
            shares_after_purge={at: tenant_totals.NOTHING},
        )
        async with self.store.apply(changes, after=self.mark.position, mark=self.mark):
            pass
        self.store.remember({}, changes)

    async def apply_again(self, entries: Sequence[LogEntry]) -> None:
        """Apply entries before the checkpoint, which stays where it is."""
        decoded = [log_entries.decode_entry(entry) for entry in entries]
        for batch in _split_after_reverts(decoded):
            await self._apply(batch, self.mark)

    async def _apply(self, batch: Sequence[DecodedEntry], mark: ReaderMark) -> None:
        started = time.perf_counter()
        addresses = [decoded.entry.at for decoded in batch]
        sessions = await self.store.load(addresses, row_changes.named_messages(batch))
        seqs = {at: session.row.seq for at, session in sessions.items()}
        batch = await mark_repeats(self.eventlog.log, batch, seqs)
        changes = row_changes.fold_batch(sessions, batch)
        async with self.store.apply(changes, after=self.mark.position, mark=mark):
            await self._add_dead_letters(changes.broken)
            await erase(self.eventlog, changes.purges)
        self.store.remember(sessions, changes)
        self.mark = mark
        metrics.EVENTS.inc(len(changes.events))
        metrics.BATCH.observe(len(batch))
        metrics.APPLY.observe(time.perf_counter() - started)

    async def _add_dead_letters(self, broken: Sequence[BrokenEntry]) -> None:
        """Store broken entries. This runs inside the transaction, so only the owner of the shard does it."""
        for entry, reason, is_newer in broken:
            if entry.position in self._dead_lettered:
                continue
            extra = {"session_id": entry.at.session_id, "reason": reason}
            if is_newer:
                log.warning("session of a newer release: its rows wait for an upgrade", extra=extra)
                continue
            log.error("session broken: its projection stops here", extra=extra)
            metrics.BROKEN.inc()
            subject = subjects.log(entry.at)
            await self.eventlog.dead_letters.add("projector", subject, entry.payload, reason)
            self._dead_lettered.add(entry.position)

    def _mark_after(self, entry: LogEntry) -> ReaderMark:
        return self.mark._replace(position=entry.position, digest=digest_entry(entry))


def _split_after_reverts(batch: Sequence[DecodedEntry]) -> Iterator[Sequence[DecodedEntry]]:
    start = 0
    for index, decoded in enumerate(batch, start=1):
        if index == len(batch) or row_changes.is_revert(decoded):
            yield batch[start:index]
            start = index


async def mark_repeats(
    log: SessionLog, batch: Sequence[DecodedEntry], seqs: Mapping[Address, int]
) -> Sequence[DecodedEntry]:
    """Mark the entries that repeat an earlier commit. `seqs` are the last events of the sessions.

    Only an entry that claims a place before the last event, and the last word of a session without
    a row, are looked up in the log.
    """
    marked, seqs = list[DecodedEntry](), dict(seqs)
    for decoded in batch:
        at, seq = decoded.entry.at, seqs.get(decoded.entry.at, 0)
        is_stale = bool(decoded.events) and decoded.events[0].seq <= seq
        is_late_purge = at not in seqs and row_changes.find_purge(decoded) is not None
        if (is_stale or is_late_purge) and await _is_repeat(log, decoded, seq):
            marked.append(decoded._replace(repeats=True))
            continue
        marked.append(decoded)
        if decoded.events:
            seqs[at] = decoded.events[-1].seq
    return marked


async def _is_repeat(log: SessionLog, decoded: DecodedEntry, seq: int) -> bool:
    position, at, payload = decoded.entry
    try:
        stored = StoredCommit(position, decode(payload), len(payload))
        if stored.is_purge:
            return await stands_before(log, at, stored)
        return await is_repeat(log, at, stored, seq=seq, last=None)
    except RecordError:
        return False
