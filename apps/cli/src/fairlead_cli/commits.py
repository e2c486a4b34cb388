"""Reads encoded commits from the log: all shards, or one session."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from fairlead_cli.audit.commit_file import EncodedCommit
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.ports import LogEntry
from fairlead_schema.subjects import SHARDS, Address

READER: Final = "verify"
# The last commits of a shard may have been purged with their session, or a leader is elected.
QUIET_S: Final = 3.0
AGAIN_S: Final = 0.5
TRIES_MAX: Final = 10


async def read_all(eventlog: EventLog) -> AsyncIterator[EncodedCommit]:
    """Every commit of every shard, up to the present end of each shard."""
    for shard in range(SHARDS):
        async for commit in _read_shard(eventlog, shard, after=0):
            yield commit


async def count_commits(eventlog: EventLog) -> int:
    """The approximate number of commits in the whole log."""
    return sum([await eventlog.shards.last_position(shard) for shard in range(SHARDS)])


async def _read_shard(
    eventlog: EventLog, shard: int, *, after: int
) -> AsyncIterator[EncodedCommit]:
    """The commits up to the present end. A reader that falls silent, or is lost, begins again.

    Raises LogUnavailable if the shard does not come although there is more.
    """
    end, position, tries = await eventlog.shards.last_position(shard), after, 0
    while await _is_behind(eventlog, shard, position, end):
        tries += 1
        if tries > TRIES_MAX:
            raise LogUnavailable(f"shard {shard} cannot be read beyond position {position}")
        try:
            async for batch in _read_until_quiet(eventlog, shard, after=position):
                position, tries = batch[-1].position, 0
                for commit in batch:
                    if commit.position <= end:
                        yield EncodedCommit(commit.at, commit.payload)
                if position >= end:
                    return
        except LogUnavailable:
            await asyncio.sleep(AGAIN_S)


async def _is_behind(eventlog: EventLog, shard: int, position: int, end: int) -> bool:
    """Whether there is a commit up to the end that was not read. Purged commits are not there."""
    if position >= end:
        return False
    following = await eventlog.shards.next_position(shard, after=position)
    return following is not None and following <= end


async def _read_until_quiet(
    eventlog: EventLog, shard: int, *, after: int
) -> AsyncIterator[Sequence[LogEntry]]:
    batches = aiter(eventlog.shards.follow(shard, after=after, reader=READER))
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(QUIET_S):
                batch = await anext(batches)
            yield batch


async def read_session(eventlog: EventLog, at: Address) -> AsyncIterator[EncodedCommit]:
    """Every commit of one session, as its bytes stand in the log."""
    async for entry in eventlog.shards.session_entries(at, after=0):
        yield EncodedCommit(at, entry.payload)
