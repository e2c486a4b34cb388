"""Fixtures: a real Postgres for the session, a fresh database per test, and a log to write."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection.shard import Reading, project, watch
from fairlead_projector.shard_balance import Share
from fairlead_projector.supervise import Complaints, Task, keep
from fairlead_schema.events import SessionEvent
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import SHARDS, Address, shard


class Given:
    """Writes a log as its writers would: commits with contiguous seqs, in the twin's shards."""

    def __init__(self) -> None:
        self.eventlog = memory_eventlog()
        assert isinstance(self.eventlog.log, MemoryLog)
        self.log = self.eventlog.log
        self._heads: dict[Address, int] = {}
        self._ids = count(1)

    def payload(self, at: Address, *events: SessionEvent, time: int | None = None) -> bytes:
        """The next commit of a session; without a time, an event's time is its seq."""
        after, number = self._heads.get(at, 0), next(self._ids)
        drafts = tuple(
            Draft(f"evt_{number}_{index}", time or after + index, event)
            for index, event in enumerate(events, start=1)
        )
        self._heads[at] = after + len(drafts)
        return encode(Commit(f"cmt_{number}", record(drafts, after=after)))

    def commit(self, at: Address, *events: SessionEvent, time: int | None = None) -> LogEntry:
        """Write a commit before anyone reads."""
        return self.raw(at, self.payload(at, *events, time=time))

    def raw(self, at: Address, payload: bytes) -> LogEntry:
        """Write bytes before anyone reads, readable or not."""
        entries = self.log.entries[shard(at.session_id)]
        entries.append(LogEntry(len(entries) + 1, at, payload))
        return entries[-1]

    async def append(self, at: Address, *events: SessionEvent) -> None:
        """Write a commit while others follow."""
        await self.log.append_raw(at, self.payload(at, *events))


@pytest.fixture
def given() -> Given:
    return Given()


class Projection:
    """The projector's tasks over a test's log and database, and what they wrote."""

    def __init__(self, given: Given, dsn: str) -> None:
        self.given = given
        self.dsn = dsn

    @asynccontextmanager
    async def running(
        self, complaints: Complaints | None = None, share: Share | None = None
    ) -> AsyncIterator[None]:
        """All shards projected, and shared with other projectors."""
        share, eventlog = share or Share(), self.given.eventlog
        jobs = (
            partial(project, shard, self.dsn, eventlog, share, reading=Reading(500))
            for shard in range(SHARDS)
        )
        async with self.keeping(partial(watch, self.dsn, eventlog, share), *jobs, to=complaints):
            yield

    @asynccontextmanager
    async def keeping(self, *jobs: Task, to: Complaints | None = None) -> AsyncIterator[None]:
        complaints = to or Complaints()
        tasks = [
            asyncio.create_task(keep(str(number), job, complaints))
            for number, job in enumerate(jobs)
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def rows(self, query: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.cursor(row_factory=dict_row).execute(query.encode()).fetchall()

    def arrived(self) -> bool:
        """Whether every shard is projected to its end."""
        try:
            found = self.rows("SELECT shard, position FROM projection.checkpoint")
        except psycopg.Error:
            return False
        positions = {row["shard"]: row["position"] for row in found}
        return all(
            positions.get(shard) == (entries[-1].position if entries else 0)
            for shard, entries in enumerate(self.given.log.entries)
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.02)


@pytest.fixture
def projection(given: Given, dsn: str) -> Projection:
    return Projection(given, dsn)
