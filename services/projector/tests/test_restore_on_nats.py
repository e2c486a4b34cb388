"""A real log is backed up, goes on, and is restored: every reader notices (C9)."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.provision import provision
from fairlead_eventlog.register_ports import Snapshot
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import SessionWriter
from fairlead_eventlog.status.log_status import Incarnation
from fairlead_eventlog.status.status_record import record_restore
from fairlead_projector import database
from fairlead_projector.app import run_tasks
from fairlead_projector.migration_gate import MigrationGate
from fairlead_projector.migrations import migrate
from fairlead_projector.settings import FeedTimings, ProjectorSettings
from fairlead_projector.task_supervisor import Complaints
from fairlead_schema.events import AgentSwitched, SessionCreated, SessionEvent
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address, shard
from fairlead_service import ids
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

AT = Address("default", "ses_1")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
FEED = FeedTimings(safe_after_s=-1.0, advance_s=0.05, poll_s=0.1, take_over_s=0.5)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path, free_port())
    running.start()
    try:
        yield running
    finally:
        running.kill()


def agent_switch(agent: str) -> AgentSwitched:
    return AgentSwitched(message_id=f"msg_{agent}", agent=agent)


async def append(eventlog: EventLog, event: SessionEvent, after: Head) -> Head:
    drafts = (Draft(ids.event_id(), 1, event),)
    return (await eventlog.log.append(AT, ids.commit_id(), drafts, after=after)).head


@asynccontextmanager
async def run_projector(server: Server, dsn: str, eventlog: EventLog) -> AsyncIterator[None]:
    settings = ProjectorSettings(
        nats=server.address,
        request_timeout_s=5,
        postgres_dsn=dsn,
        host="127.0.0.1",
        port=free_port(),
        batch_commits_max=100,
        sweep_interval_s=60,
        sweep_age_s=60,
        feed_timings=FEED,
    )
    gate = MigrationGate(dsn)
    async with run_tasks(settings, eventlog, Complaints(), gate):
        yield


async def wait_for_agent(dsn: str, agent: str) -> None:
    async with asyncio.timeout(60), await psycopg.AsyncConnection.connect(dsn) as connection:
        while True:
            rows = await connection.execute("SELECT agent FROM read.session")
            if await rows.fetchall() == [(agent,)]:
                return
            await connection.rollback()
            await asyncio.sleep(0.1)


async def wait_for_feed(eventlog: EventLog, position: int) -> None:
    async with asyncio.timeout(60):
        while (await eventlog.feed.checkpoint(shard(AT.session_id)))[0] != position:
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("told", [True, False], ids=["told", "noticed"])
async def test_every_reader_notices_a_store_that_was_rolled_back(
    server: Server,
    dsn: str,
    tmp_path: Path,
    told: bool,  # noqa: FBT001
) -> None:
    """C9: the log is as long again when the projector comes back, with other commits."""
    await provision(server.address)
    async with await database.connect(dsn) as connection:
        await migrate(connection)
    async with connect(server.address, name="test") as eventlog:
        writer = _open_writer(eventlog)
        head = await append(eventlog, CREATED, START)
        restart_with(server, lambda store: shutil.copytree(store, tmp_path / "backup"))
        lost = await _until_written(eventlog, agent_switch("lost"), head)
        assert (await writer.read(AT)).state.seq == lost.seq
        async with run_projector(server, dsn, eventlog):
            await wait_for_agent(dsn, "lost")
            await wait_for_feed(eventlog, lost.position)
        before = await _incarnation(eventlog)
        await eventlog.snapshots.store(AT, Snapshot(lost, b"lost"))

        restart_with(server, lambda store: _replace(store, tmp_path / "backup"))
        if told:
            await _tell(server)
        new = await _until_written(eventlog, agent_switch("new"), head)
        assert new == lost
        async with run_projector(server, dsn, eventlog):
            await wait_for_agent(dsn, "new")
            await wait_for_feed(eventlog, new.position)

        assert (await _incarnation(eventlog)).previous == before.id
        assert await eventlog.snapshots.load(AT) is None
        session = (await writer.read(AT)).state
        assert session.profile is not None
        assert session.profile.agent == "new"


async def test_a_restore_takes_the_wakes_of_the_lost_log_away(server: Server) -> None:
    """C9: the streams of the log were restored alone. A wake carries a commit that may be lost."""
    await provision(server.address)
    async with connect(server.address, name="test") as eventlog:
        assert await eventlog.wakes.wake(AT, commit=CommitHint(7, 6, b"lost"))

        await record_restore(server.address)

        assert await eventlog.wakes.wake(AT), "no earlier wake refuses this one"


async def _incarnation(eventlog: EventLog) -> Incarnation:
    incarnation = (await eventlog.status.read()).incarnation
    assert incarnation is not None
    return incarnation


def _open_writer(eventlog: EventLog) -> SessionWriter[Session]:
    """A writer with a cache, as every service has one."""
    cache = SessionCache(eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=9)
    writer = SessionWriter(eventlog.log, cache, ids)
    eventlog.status.on_restore(writer.forget_all)
    return writer


def restart_with(server: Server, change: Callable[[Path], object]) -> None:
    """Change the store of the server while it is down."""
    server.kill()
    change(server.directory / "js")
    server.start()


def _replace(store: Path, backup: Path) -> None:
    shutil.rmtree(store)
    shutil.copytree(backup, store)


async def _until_written(eventlog: EventLog, event: SessionEvent, after: Head) -> Head:
    """Append after the server has come back."""
    async with asyncio.timeout(30):
        while eventlog.complaint() is not None:
            await asyncio.sleep(0.05)
    return await append(eventlog, event, after)


async def _tell(server: Server) -> None:
    """What `fairlead provision --restored` does, as soon as the server has loaded its streams."""
    await provision(server.address)
    await record_restore(server.address)
