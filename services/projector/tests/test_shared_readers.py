"""Two readers of a shard in one process share a consumer, and neither ever waits for the other."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.feed import MemoryFeed
from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_projector.feed.publisher import publish_shard
from fairlead_projector.projection.shard import ReadOptions
from fairlead_projector.settings import FeedTimings
from fairlead_projector.shard_reader import Companions, ReadPace, ShardReader, follow_shard
from fairlead_schema.events import SessionArchived, SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address, shard

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

AT = Address("default", "ses_1")
SHARD = shard(AT.session_id)
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))


class CountedShards:
    """The shards of the in-memory log, which count the consumers that are followed and forgotten."""

    def __init__(self, log_builder: "LogBuilder") -> None:
        self._log = log_builder.log
        self.following: list[str] = []
        self.forgotten: list[str] = []
        self.failing: set[str] = set()

    async def follow(
        self, shard: int, *, after: int, reader: str = "projector", bytes_max: int = BATCH_BYTES
    ) -> AsyncIterator[Sequence[LogEntry]]:
        self.following.append(reader)
        try:
            async for batch in self._log.follow(shard, after=after, bytes_max=bytes_max):
                if reader in self.failing:
                    raise LogUnavailable(f"the consumer of {reader} is gone")
                yield batch
        finally:
            self.following.remove(reader)

    async def forget_reader(self, shard: int, reader: str) -> None:
        assert shard == SHARD
        self.forgotten.append(reader)

    async def reader_position(self, shard: int, reader: str) -> int | None:
        return await self._log.reader_position(shard, reader)

    async def last_position(self, shard: int) -> int:
        return await self._log.last_position(shard)

    def session_entries(self, at: Address, *, after: int) -> AsyncIterator[LogEntry]:
        return self._log.session_entries(at, after=after)

    async def entry_at(self, shard: int, position: int) -> LogEntry | None:
        return await self._log.entry_at(shard, position)

    async def next_position(self, shard: int, *, after: int) -> int | None:
        return await self._log.next_position(shard, after=after)


class Readers:
    """A reader of the tables and one of the feed, and what each has taken."""

    def __init__(self, log_builder: "LogBuilder", stack: AsyncExitStack) -> None:
        self.log_builder = log_builder
        self.shards = CountedShards(log_builder)
        self._eventlog = replace(log_builder.eventlog, shards=self.shards)
        self._stack = stack
        self._companions = Companions()
        self.taken: dict[str, list[int]] = {}
        self.readers: dict[str, ShardReader] = {}

    async def open(self, *names: str, after: int = 0, ahead_max: int = 500) -> None:
        for name in names:
            pace = ReadPace(quiet_s=5, ahead_max=ahead_max, companions=self._companions)
            following = follow_shard(self._eventlog, SHARD, after=after, reader=name, pace=pace)
            self.readers[name] = await self._stack.enter_async_context(following)
            self.taken[name] = []

    async def append(self, count: int) -> None:
        for _number in range(count):
            await self.log_builder.append(AT, SessionArchived())

    async def take(self, name: str, until: int) -> None:
        """Take everything up to a position."""
        taken = self.taken[name]
        async with asyncio.timeout(10):
            while not taken or taken[-1] < until:
                await self.readers[name].wait()
                taken += [entry.position for entry in self.readers[name].take()]


@pytest.fixture
async def readers(log_builder: "LogBuilder") -> AsyncIterator[Readers]:
    async with AsyncExitStack() as stack:
        yield Readers(log_builder, stack)


async def test_two_readers_at_the_same_place_have_one_consumer(readers: Readers) -> None:
    await readers.append(3)
    await readers.open("projector")
    await readers.take("projector", 3)
    await readers.open("feed")
    await readers.take("feed", 3)
    for _number in range(3):
        await readers.append(2)
        for name in readers.taken:
            await readers.take(name, len(readers.log_builder.log.entries[SHARD]))

    assert readers.shards.following == ["projector"]
    assert readers.shards.forgotten == ["feed"]
    assert readers.taken == {name: list(range(1, 10)) for name in ("projector", "feed")}


@pytest.mark.parametrize(("stalled", "other"), [("projector", "feed"), ("feed", "projector")])
async def test_a_reader_that_stands_still_stops_nobody(
    readers: Readers, stalled: str, other: str
) -> None:
    """It reads no more than it may keep, and later goes on where it stood."""
    await readers.open("projector", "feed", ahead_max=5)
    await readers.append(2)
    for name in readers.taken:
        await readers.take(name, 2)
    for end in range(12, 62, 10):
        await readers.append(10)
        await readers.take(other, end)

    assert len(readers.readers[stalled].take()) < 20
    readers.taken[stalled] = []
    await readers.take(stalled, 52)
    await readers.append(1)
    for name in readers.taken:
        await readers.take(name, 53)
    await readers.append(1)
    for name in readers.taken:
        await readers.take(name, 54)
    assert len(readers.shards.following) == 1
    assert readers.taken[other] == list(range(1, 55))


async def test_a_guest_goes_on_by_itself_when_its_host_fails(readers: Readers) -> None:
    await readers.open("projector", "feed")
    await readers.append(1)
    for name in readers.taken:
        await readers.take(name, 1)
    await asyncio.sleep(0)
    (host,) = readers.shards.following
    guest = "feed" if host == "projector" else "projector"
    readers.shards.failing.add(host)
    await readers.append(2)

    await readers.take(guest, 3)
    with pytest.raises(LogUnavailable):
        await readers.take(host, 3)
    assert readers.taken[guest] == [1, 2, 3]
    assert readers.shards.following == [guest]


@pytest.mark.parametrize("seed", range(20))
async def test_every_entry_comes_once_and_in_order_whoever_stalls(
    readers: Readers, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - a repeatable test
    await readers.open("projector", "feed", ahead_max=3)
    for _step in range(60):
        await readers.append(chance.randrange(4))
        for _turn in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if chance.random() < 0.6:
            name = chance.choice(["projector", "feed"])
            entries = readers.readers[name].take()
            readers.taken[name] += [entry.position for entry in entries]
    await readers.append(1)
    end = len(readers.log_builder.log.entries[SHARD])
    for name in readers.taken:
        await readers.take(name, end)

    assert readers.taken == {name: list(range(1, end + 1)) for name in readers.taken}


def has_items(feed: MemoryFeed, count: int) -> bool:
    return len(feed.items) == count


@asynccontextmanager
async def run_both(projection: "Projection") -> AsyncIterator[None]:
    """The tables and the feed of one process."""
    companions, eventlog = Companions(), projection.log_builder.eventlog
    timings = FeedTimings(linger_s=0.01, advance_s=0.05, poll_s=0.01, take_over_s=0.1)
    feed = partial(publish_shard, SHARD, eventlog, timings=timings, companions=companions)
    async with projection.run(options=ReadOptions(5, companions=companions)):
        await projection.wait_until(projection.is_caught_up)
        async with projection.run_tasks(feed):
            yield


@pytest.mark.integration
async def test_the_feed_goes_on_while_postgres_stalls(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """Nobody who reads the feed notices it, however many events come meanwhile."""
    feed = log_builder.eventlog.feed
    assert isinstance(feed, MemoryFeed)
    async with run_both(projection):
        await log_builder.append(AT, CREATED)
        await projection.wait_until(lambda: projection.is_caught_up() and len(feed.items) == 1)
        with projection.connect() as stall:
            stall.execute("BEGIN")
            stall.execute("LOCK TABLE projection.checkpoint IN ACCESS EXCLUSIVE MODE")
            for number in range(2, 42):
                await log_builder.append(AT, SessionArchived())
                await projection.wait_until(partial(has_items, feed, number))
            stall.execute("ROLLBACK")
        await projection.wait_until(projection.is_caught_up)

    assert projection.rows("SELECT seq FROM read.session") == [{"seq": 41}]
