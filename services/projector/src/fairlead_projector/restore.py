"""Notices that the log was restored from an older backup, and says where a reader goes on (ADR 0030)."""

import asyncio
import logging
from hashlib import sha256
from typing import Final, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry
from fairlead_projector.errors import LogRestored

log = logging.getLogger(__name__)

# A new leader may still apply its last commits, so a single look proves nothing.
LOOKS: Final = 3
LOOK_PAUSE_S: Final = 1.0


class ReaderMark(NamedTuple):
    """How far a reader has come in a shard, and which log it read."""

    position: int
    incarnation: str | None = None
    """None: an earlier release read it, or the log had none."""
    digest: str | None = None
    """A hash of the entry at the position, if the reader noted one."""


def digest_entry(entry: LogEntry) -> str:
    """A short hash of an entry. Another entry at the same position has another one."""
    return sha256(entry.payload).hexdigest()[:16]


async def resume_mark(eventlog: EventLog, shard: int, mark: ReaderMark) -> ReaderMark:
    """Where a reader goes on: behind its mark, or earlier if the log was restored since.

    The first reader that notices a restore begins the next incarnation, so that all others know.
    """
    current = (await eventlog.status.read()).incarnation
    if current is not None and mark.incarnation not in {None, current.id}:
        common = current.common_position(shard, known=mark.incarnation)
        return ReaderMark(min(mark.position, common), current.id)
    for look in range(LOOKS):
        if look:
            await asyncio.sleep(LOOK_PAUSE_S)
        if not await _is_rewound(eventlog, shard, mark):
            return mark._replace(incarnation=None if current is None else current.id)
    await eventlog.snapshots.remove_all()
    begun = await eventlog.status.begin_incarnation(after=current)
    log.error(
        "log restored from an older backup: its readers start again",
        extra={"shard": shard, "position": mark.position, "incarnation": begun.id},
    )
    return ReaderMark(0, begun.id)


async def check_log(eventlog: EventLog, shard: int, mark: ReaderMark) -> None:
    """Raise LogRestored if the log is not the one that a reader has read up to its mark."""
    check_incarnation(eventlog, shard, mark)
    if await _is_rewound(eventlog, shard, mark):
        raise LogRestored(shard)


def check_incarnation(eventlog: EventLog, shard: int, mark: ReaderMark) -> None:
    """Raise LogRestored if this process knows a newer incarnation than a reader."""
    current = eventlog.status.current.incarnation
    if current is not None and mark.incarnation not in {None, current.id}:
        raise LogRestored(shard)


async def _is_rewound(eventlog: EventLog, shard: int, mark: ReaderMark) -> bool:
    if await eventlog.shards.last_position(shard) < mark.position:
        return True
    if mark.digest is None:
        return False
    entry = await eventlog.shards.entry_at(shard, mark.position)
    # The entry of a purged session is gone, and that says nothing.
    return entry is not None and digest_entry(entry) != mark.digest
