"""A reader whose consumer the server lost subscribes again after its last entry."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_projector.shard_reader import ReadPace, follow_shard
from fairlead_schema.events import SessionArchived, SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address, shard

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

AT = Address("default", "ses_1")
SHARD = shard(AT.session_id)
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))


class ForgetfulShard:
    """A shard whose first reader gets one batch and then nothing more."""

    def __init__(self, log_builder: "LogBuilder") -> None:
        self._log = log_builder.log
        self.readers = 0

    async def follow(
        self, shard: int, *, after: int, reader: str = "projector", bytes_max: int = BATCH_BYTES
    ) -> AsyncIterator[Sequence[LogEntry]]:
        self.readers += 1
        async for batch in self._log.follow(shard, after=after, reader=reader, bytes_max=bytes_max):
            yield batch
            if self.readers == 1:
                await asyncio.Event().wait()

    async def reader_position(self, shard: int, reader: str) -> int | None:
        return await self._log.reader_position(shard, reader)

    async def last_position(self, shard: int) -> int:
        return await self._log.last_position(shard)

    def session_entries(self, at: Address, *, after: int) -> AsyncIterator[LogEntry]:
        return self._log.session_entries(at, after=after)

    async def entry_at(self, shard: int, position: int) -> LogEntry | None:
        return await self._log.entry_at(shard, position)

    async def forget_reader(self, shard: int, reader: str) -> None:
        await self._log.forget_reader(shard, reader)

    async def next_position(self, shard: int, *, after: int) -> int | None:
        raise NotImplementedError


async def test_a_forgotten_reader_begins_again_after_its_last_entry(
    log_builder: "LogBuilder",
) -> None:
    log_builder.commit(AT, CREATED)
    shards = ForgetfulShard(log_builder)
    eventlog = replace(log_builder.eventlog, shards=shards)
    positions: list[int] = []

    async with (
        asyncio.timeout(5),
        follow_shard(
            eventlog, SHARD, after=0, reader="feed", pace=ReadPace(quiet_s=0.02)
        ) as shard_reader,
    ):
        while positions != [1, 2]:
            has_entries = await shard_reader.wait()
            positions += [entry.position for entry in shard_reader.take()]
            if has_entries and positions == [1]:
                log_builder.commit(AT, SessionArchived())

    assert shards.readers == 2


async def test_a_quiet_shard_is_left_in_peace(log_builder: "LogBuilder") -> None:
    log_builder.commit(AT, CREATED)
    shards = ForgetfulShard(log_builder)
    eventlog = replace(log_builder.eventlog, shards=shards)
    quiet = 0

    async with follow_shard(
        eventlog, SHARD, after=0, reader="feed", pace=ReadPace(quiet_s=0.01)
    ) as shard_reader:
        while quiet < 10:
            quiet += not await shard_reader.wait()
            shard_reader.take()

    assert shards.readers == 1
