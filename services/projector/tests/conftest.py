"""Fixtures: a Postgres server per run, a database per test, and a builder of logs."""

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
from fairlead_projector.projection.group.shard_group import ShardGroup
from fairlead_projector.projection.group.writer import BatchLimits
from fairlead_projector.projection.shard import (
    WATCH_INTERVAL_S,
    ReadOptions,
    project_shard,
    watch_shards,
)
from fairlead_projector.shard_balance import ShardShare
from fairlead_projector.task_supervisor import Complaints, Task, keep_running
from fairlead_schema.events import SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.record import Commit, Draft, decode, encode, record
from fairlead_schema.subjects import SHARDS, Address, shard
from fairlead_service.supervise import cancel_and_wait


class LogBuilder:
    """Writes commits with contiguous seqs into the shards of the in-memory log."""

    def __init__(self) -> None:
        self.eventlog = memory_eventlog()
        assert isinstance(self.eventlog.log, MemoryLog)
        self.log = self.eventlog.log
        self._heads: dict[Address, int] = {}
        self._ids = count(1)

    def payload(
        self,
        at: Address,
        *events: SessionEvent,
        time: int | None = None,
        by: PrincipalName | None = None,
    ) -> bytes:
        """The next commit of a session. Without a time, the time of an event is its seq."""
        after, number = self._heads.get(at, 0), next(self._ids)
        drafts = tuple(
            Draft(f"evt_{number}_{index}", time or after + index, event)
            for index, event in enumerate(events, start=1)
        )
        self._heads[at] = after + len(drafts)
        return encode(Commit(f"cmt_{number}", record(drafts, after=after, by=by)))

    def commit(self, at: Address, *events: SessionEvent, time: int | None = None) -> LogEntry:
        """Write a commit before any reader starts."""
        return self.raw(at, self.payload(at, *events, time=time))

    def raw(self, at: Address, payload: bytes) -> LogEntry:
        """Write any bytes before a reader starts."""
        entries = self.log.entries[shard(at.session_id)]
        entries.append(LogEntry(len(entries) + 1, at, payload))
        return entries[-1]

    def rewind(self, at: Address) -> None:
        """Go on after the last commit that the log has of a session."""
        commits = [decode(e.payload) for e in self.log.entries[shard(at.session_id)] if e.at == at]
        self._heads[at] = commits[-1].events[-1].seq if commits else 0

    async def append(
        self, at: Address, *events: SessionEvent, by: PrincipalName | None = None
    ) -> None:
        """Write a commit while readers follow."""
        await self.log.append_raw(at, self.payload(at, *events, by=by))


@pytest.fixture
def log_builder() -> LogBuilder:
    return LogBuilder()


class Projection:
    """Runs the tasks of a projector over a test's log and database, and reads the rows."""

    def __init__(self, log_builder: LogBuilder, dsn: str) -> None:
        self.log_builder = log_builder
        self.dsn = dsn

    @asynccontextmanager
    async def run(
        self,
        complaints: Complaints | None = None,
        share: ShardShare | None = None,
        *,
        options: ReadOptions | None = None,
        watch_interval_s: float = WATCH_INTERVAL_S,
    ) -> AsyncIterator[None]:
        """Project all shards during the block, and share them with other projectors."""
        share, eventlog = share or ShardShare(), self.log_builder.eventlog
        options = options or ReadOptions(500)
        limits = BatchLimits(options.ahead_max, options.bytes_max)
        async with ShardGroup(self.dsn, eventlog, limits) as group:
            jobs = (
                partial(project_shard, shard, group, share, options=options)
                for shard in range(SHARDS)
            )
            watch = partial(watch_shards, self.dsn, eventlog, share, interval_s=watch_interval_s)
            async with self.run_tasks(watch, *jobs, complaints=complaints):
                yield

    @asynccontextmanager
    async def run_tasks(
        self, *jobs: Task, complaints: Complaints | None = None
    ) -> AsyncIterator[None]:
        complaints = complaints or Complaints()
        tasks = [
            asyncio.create_task(keep_running(str(number), job, complaints))
            for number, job in enumerate(jobs)
        ]
        try:
            yield
        finally:
            await cancel_and_wait(*tasks)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn, autocommit=True)

    def rows(self, query: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.cursor(row_factory=dict_row).execute(query.encode()).fetchall()

    def is_caught_up(self) -> bool:
        """Whether every shard is projected to its end."""
        try:
            checkpoints = self.rows("SELECT shard, position FROM projection.checkpoint")
        except psycopg.Error:
            return False
        positions = {row["shard"]: row["position"] for row in checkpoints}
        return all(
            positions.get(shard) == (entries[-1].position if entries else 0)
            for shard, entries in enumerate(self.log_builder.log.entries)
        )

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.02)


@pytest.fixture
def projection(log_builder: LogBuilder, dsn: str) -> Projection:
    return Projection(log_builder, dsn)
