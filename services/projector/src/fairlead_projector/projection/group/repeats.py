"""Finds entries that repeat an earlier commit of their session."""

from collections.abc import Mapping, Sequence

from fairlead_eventlog.ports import SessionLog, StoredCommit
from fairlead_eventlog.replicas.commit_order import is_repeat, stands_before
from fairlead_projector.projection import row_changes
from fairlead_projector.projection.log_entries import DecodedEntry
from fairlead_schema.record import RecordError, decode
from fairlead_schema.subjects import Address


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
