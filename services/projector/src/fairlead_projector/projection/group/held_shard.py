"""A shard that this process projects: how far it is, and whether it is still ours."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection.store import CheckpointMove, TableStore
from fairlead_projector.restore import (
    ReaderMark,
    check_incarnation,
    check_log,
    digest_entry,
    resume_mark,
)

log = logging.getLogger(__name__)

UseStore: TypeAlias = Callable[[], AbstractAsyncContextManager[TableStore]]
"""Has the store of a group alone during a block."""


class HeldShard:
    """One shard, from its checkpoint on."""

    def __init__(self, eventlog: EventLog, shard: int) -> None:
        self.eventlog = eventlog
        self.shard = shard
        self.mark = ReaderMark(0)
        """How far the shard is projected."""
        self.dead_lettered: set[int] = set()
        """The positions whose dead letters are stored."""

    async def load_checkpoint(self, use: UseStore) -> None:
        """Load the checkpoint. If the log was restored and ends before it, all rows start again.

        It has the store only while it needs it: others may wait for it, and the log may be slow.
        """
        async with use() as store:
            store.forget_shard(self.shard)
            stored = await store.checkpoint(self.shard)
        self.mark = await resume_mark(self.eventlog, self.shard, stored)
        if self.mark.position < stored.position:
            log.error(
                "log restored: the read models are rebuilt from its beginning",
                extra={"shard": self.shard, "checkpoint": stored.position},
            )
            async with use() as store:
                await store.restart(self.mark.incarnation)
                self.mark = await store.checkpoint(self.shard)

    def check_incarnation(self) -> None:
        """Raise LogRestored if this process knows that the log was restored."""
        check_incarnation(self.eventlog, self.shard, self.mark)

    async def check_log(self) -> None:
        """Raise LogRestored if the log is not the one that the rows come from."""
        await check_log(self.eventlog, self.shard, self.mark)

    def move_to(self, entry: LogEntry) -> CheckpointMove:
        """How the checkpoint moves when everything up to an entry is applied."""
        mark = self.mark._replace(position=entry.position, digest=digest_entry(entry))
        return CheckpointMove(self.mark.position, mark)

    def stay(self) -> CheckpointMove:
        """A move to the same place. It fails if another writer moved the checkpoint."""
        return CheckpointMove(self.mark.position, self.mark)
