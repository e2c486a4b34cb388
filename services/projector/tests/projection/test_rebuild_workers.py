"""A rebuild divides the shards over processes. BEHAVIOUR H-22: the rows are the same."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import LogEntry
from fairlead_eventlog.provision import provision
from fairlead_projector import database
from fairlead_projector.errors import WorkerDied
from fairlead_projector.projection.rebuild import RebuildProgress, digest, divide_shards, rebuild
from fairlead_projector.projection.workers.crew import Staffing
from fairlead_schema import subjects
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.subjects import SHARDS
from fairlead_testing.nats import Server
from services.projector.tests import test_restore_on_nats
from services.projector.tests.projection.test_rebuild import write_log

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

server = test_restore_on_nats.server

NOWHERE = NatsAddress("nats://127.0.0.1:1")


@pytest.fixture
async def eventlog(server: Server, log_builder: "LogBuilder") -> AsyncIterator[EventLog]:
    """A real log with the commits of `write_log`."""
    await provision(server.address)
    write_log(log_builder)
    async with open_link(server.address, name="test") as link:

        async def store(entries: list[LogEntry]) -> None:
            for entry in entries:
                await link.store(subjects.log(entry.at), entry.payload)

        await asyncio.gather(*map(store, log_builder.log.entries))
    async with connect(server.address, name="test") as eventlog:
        yield eventlog


def find_workers() -> list[int]:
    """The worker processes that this process has started: copies of it, or interpreters of their own."""
    own = os.getpid()
    children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    return [int(pid) for pid in children if is_worker(_command_line(pid), _command_line(own))]


def is_worker(command: bytes, own: bytes) -> bool:
    return command == own or b"projection.workers.worker" in command


def _command_line(pid: int | str) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def count_files() -> int:
    """The files that this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def ignore(_progress: RebuildProgress) -> None:
    """Do nothing."""


@pytest.mark.integration
@pytest.mark.parametrize("copies", [True, False])
async def test_a_rebuild_by_several_processes_gives_the_same_rows(
    server: Server, eventlog: EventLog, dsn: str, *, copies: bool
) -> None:
    """H-22: and the workers are gone when it is done."""
    files = count_files()
    await rebuild(dsn, eventlog, progress=ignore)
    alone = await digest(dsn)
    seen: set[int] = set()

    await rebuild(
        dsn,
        eventlog,
        progress=lambda _progress: seen.update(find_workers()),
        staffing=Staffing(server.address, 3, commits_per_process=1, copies=copies),
    )

    assert await digest(dsn) == alone
    assert len(seen) == 2
    assert find_workers() == []
    assert count_files() == files


@pytest.mark.integration
async def test_a_killed_worker_fails_the_rebuild_and_the_next_one_completes(
    server: Server, eventlog: EventLog, dsn: str
) -> None:
    await rebuild(dsn, eventlog, progress=ignore)
    before = await digest(dsn)
    staffing = Staffing(server.address, 2, commits_per_process=1)

    def kill_worker(_progress: RebuildProgress) -> None:
        for pid in find_workers():
            os.kill(pid, signal.SIGKILL)

    async with await database.connect(dsn) as connection:
        # The worker cannot have this shard, so the rebuild is not done before the worker is killed.
        assert await database.try_lock(connection, 1)
        with pytest.raises(
            WorkerDied, match=r"not complete: .* was killed by signal 9 .* run it again"
        ):
            await rebuild(dsn, eventlog, progress=kill_worker, staffing=staffing)
    assert find_workers() == []

    await rebuild(dsn, eventlog, progress=ignore, staffing=staffing)
    assert await digest(dsn) == before


def test_the_shards_are_divided_by_their_work_and_each_belongs_to_one_process() -> None:
    work = [5, 80, 20, 10, 5, 40, 0, 0]
    parts = divide_shards(work, 3)
    assert sorted(shard for part in parts for shard in part) == list(range(SHARDS))
    assert sorted(sum(work[shard] for shard in part) for part in parts) == [40, 40, 80]
    assert all(divide_shards([0] * SHARDS, SHARDS))


@pytest.mark.parametrize(
    ("processes_max", "commits", "workers"),
    [(2, 0, 0), (2, 99, 0), (2, 100, 1), (4, 250, 2), (1, 10_000, 0), (99, 10_000, SHARDS - 1)],
)
def test_a_short_log_needs_no_worker_and_each_process_has_a_shard(
    processes_max: int, commits: int, workers: int
) -> None:
    staffing = Staffing(NOWHERE, processes_max, commits_per_process=100)
    assert staffing.count_workers(commits) == workers
