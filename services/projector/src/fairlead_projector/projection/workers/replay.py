"""Replays shards from their checkpoints on: the part of a rebuild that every process of it does."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_projector.projection.group.shard_group import ShardGroup
from fairlead_projector.projection.group.writer import BatchLimits
from fairlead_projector.projection.shard import ReadOptions, project_shard
from fairlead_projector.shard_balance import ShardShare
from fairlead_projector.task_supervisor import Complaints, keep_running
from fairlead_service.supervise import cancel_and_wait

# Nobody waits for a single entry of a rebuild: a large batch writes each session and message once.
LIMITS: Final = BatchLimits(commits_max=2_000)
# While Postgres works for one group, this process decodes and folds for the other.
GROUPS: Final = 2
# Several processes keep the cores busy without that, and larger transactions cost less.
CREW_LIMITS: Final = BatchLimits(commits_max=4_000)
# A batch makes many small values without cycles. Frequent collection takes a fifth of the time.
COLLECT_AFTER: Final = (500_000, 10, 10)


@asynccontextmanager
async def replay_shards(
    dsn: str, eventlog: EventLog, shards: Sequence[int], *, reader: str, alone: bool
) -> AsyncIterator[None]:
    """Replay these shards during the block, alone or beside other processes."""
    limits, count = (LIMITS, GROUPS) if alone else (CREW_LIMITS, 1)
    # The first projection has stored the dead letters already.
    replay = replace(eventlog, dead_letters=_DiscardedLetters())
    share, complaints = ShardShare(), Complaints()
    options = ReadOptions(limits.commits_max, reader=reader)
    async with AsyncExitStack() as stack:
        stack.enter_context(_seldom_collected())
        groups = [
            await stack.enter_async_context(ShardGroup(dsn, replay, limits, synced=False))
            for _number in range(count)
        ]
        tasks = [
            asyncio.create_task(
                keep_running(
                    f"shard {shard}",
                    partial(project_shard, shard, groups[place % count], share, options=options),
                    complaints,
                )
            )
            for place, shard in enumerate(shards)
        ]
        try:
            yield
        finally:
            await cancel_and_wait(*tasks)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _DiscardedLetters:
    """Drops dead letters: the first projection stored them already."""

    async def add(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        """Do nothing."""
