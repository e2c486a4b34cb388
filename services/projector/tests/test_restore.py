"""A log that was restored from an older backup: projector and feed notice it and start again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.feed import MemoryFeed
from fairlead_eventlog.ports import Head
from fairlead_eventlog.register_ports import Snapshot
from fairlead_projector import restore
from fairlead_projector.errors import LogRestored
from fairlead_projector.feed.publisher import publish_shard
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_projector.settings import FeedTimings
from fairlead_schema.events import AgentSwitched, SessionArchived, SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import SHARDS, Address, shard

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

AT = Address("default", "ses_1")
SHARD = shard(AT.session_id)
NEIGHBOUR = next(Address("default", f"ses_{n}") for n in range(2, 99) if shard(f"ses_{n}") == SHARD)
ELSEWHERE = next(Address("default", f"ses_{n}") for n in range(2, 99) if shard(f"ses_{n}") != SHARD)
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
ARCHIVED = SessionArchived()
TIMINGS = FeedTimings(safe_after_s=-1.0, advance_s=0.01, poll_s=0.01, take_over_s=0.1)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "LOOK_PAUSE_S", 0.01)


def agent_switch(agent: str) -> AgentSwitched:
    return AgentSwitched(message_id=f"msg_{agent}", agent=agent)


def rewind(log_builder: "LogBuilder", *, keep: int) -> None:
    """Let the shard end where an older backup ended."""
    del log_builder.log.entries[SHARD][keep:]
    for at in (AT, NEIGHBOUR):
        log_builder.log.parse_again(at)
        log_builder.rewind(at)


async def begin_after_restore(log_builder: "LogBuilder") -> None:
    """What `fairlead provision --restored` does."""
    status, shards = log_builder.eventlog.status, log_builder.eventlog.shards
    ends = [await shards.last_position(number) for number in range(SHARDS)]
    await status.begin_incarnation(ends, after=status.current.incarnation)


@asynccontextmanager
async def publish_feed(log_builder: "LogBuilder") -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(
        publish_shard(SHARD, log_builder.eventlog, on_healthy=lambda: None, timings=TIMINGS)
    )
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LogRestored):
            await task


def agents_published(log_builder: "LogBuilder") -> list[bytes]:
    assert isinstance(log_builder.eventlog.feed, MemoryFeed)
    items = log_builder.eventlog.feed.items.values()
    return [item.payload for item in items if item.subject.endswith("agent.switched")]


async def wait_for_feed(log_builder: "LogBuilder", position: int) -> None:
    async with asyncio.timeout(10):
        while (await log_builder.eventlog.feed.checkpoint(SHARD))[0] != position:
            await asyncio.sleep(0.005)


async def write_history(log_builder: "LogBuilder") -> None:
    await log_builder.append(AT, CREATED)
    await log_builder.append(NEIGHBOUR, CREATED)
    await log_builder.append(ELSEWHERE, CREATED)
    await log_builder.append(AT, agent_switch("lost"))
    await log_builder.append(NEIGHBOUR, ARCHIVED)


@pytest.mark.integration
@pytest.mark.parametrize("told", [False, True], ids=["noticed", "told by the operator"])
@pytest.mark.parametrize("longer", [False, True], ids=["shorter log", "longer log"])
async def test_the_projector_rebuilds_after_a_restore(
    log_builder: "LogBuilder",
    projection: "Projection",
    told: bool,  # noqa: FBT001
    longer: bool,  # noqa: FBT001
) -> None:
    """C9: the rows are those of the restored log, also if it is longer than the lost one by now."""
    await write_history(log_builder)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
    rewind(log_builder, keep=2)
    if told:
        await begin_after_restore(log_builder)
    await log_builder.append(AT, agent_switch("new"))
    for _ in range(3 if longer else 0):
        await log_builder.append(AT, agent_switch("later"))

    async with projection.run():
        await projection.wait_until(
            lambda: bool(projection.rows("SELECT 1 FROM read.session WHERE agent IS NOT NULL"))
        )
        await projection.wait_until(projection.is_caught_up)
    projected = await digest(projection.dsn)

    (row,) = projection.rows("SELECT agent, seq FROM read.session WHERE session_id = 'ses_1'")
    assert row == ({"agent": "later", "seq": 5} if longer else {"agent": "new", "seq": 2})
    archived = projection.rows("SELECT 1 FROM read.session WHERE archived_at IS NOT NULL")
    assert archived == []
    assert len(projection.rows("SELECT 1 FROM read.session")) == 3
    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert await digest(projection.dsn) == projected


@pytest.mark.integration
async def test_a_running_projector_notices_a_restore(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """C9: the incarnation changes under it, and it starts again without a restart."""
    await write_history(log_builder)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        rewind(log_builder, keep=2)
        await begin_after_restore(log_builder)
        await log_builder.append(AT, agent_switch("new"))
        await projection.wait_until(
            lambda: bool(projection.rows("SELECT 1 FROM read.session WHERE agent = 'new'"))
        )
        await projection.wait_until(projection.is_caught_up)
    assert projection.rows("SELECT 1 FROM read.session WHERE agent = 'lost'") == []


@pytest.mark.integration
async def test_a_projector_that_was_behind_the_backup_keeps_its_rows(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """C9: only rows of the lost end are wrong, and it has none."""
    await log_builder.append(AT, CREATED)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
    with projection.connect() as connection:
        connection.execute("UPDATE projection.session SET title = 'kept'")
    await write_history(log_builder)
    rewind(log_builder, keep=2)
    await begin_after_restore(log_builder)

    async with projection.run():
        await log_builder.append(AT, agent_switch("new"))
        await projection.wait_until(projection.is_caught_up)

    (row,) = projection.rows("SELECT title, agent FROM read.session WHERE session_id = 'ses_1'")
    assert row == {"title": "kept", "agent": "new"}


async def test_the_feed_goes_on_where_the_backup_ended(log_builder: "LogBuilder") -> None:
    """C9: told by the operator, it publishes what is new and nothing twice."""
    async with publish_feed(log_builder):
        await write_history(log_builder)
        await wait_for_feed(log_builder, 4)
    published = len(agents_published(log_builder))
    rewind(log_builder, keep=2)
    await begin_after_restore(log_builder)
    await log_builder.append(AT, agent_switch("new"))

    async with publish_feed(log_builder):
        await wait_for_feed(log_builder, 3)

    assert len(agents_published(log_builder)) == published + 1
    assert b"new" in agents_published(log_builder)[-1]
    state, _revision = await log_builder.eventlog.feed.state(SHARD)
    incarnation = log_builder.eventlog.status.current.incarnation
    assert incarnation is not None
    assert state.incarnation == incarnation.id


async def test_a_feed_ahead_of_its_log_begins_another_incarnation(
    log_builder: "LogBuilder",
) -> None:
    """C9: nobody told it. It publishes the shard again, and snapshots of the lost log are dropped."""
    eventlog = log_builder.eventlog
    async with publish_feed(log_builder):
        await write_history(log_builder)
        await wait_for_feed(log_builder, 4)
    before = eventlog.status.current.incarnation
    await eventlog.snapshots.store(AT, Snapshot(Head(3, 2), b"lost"))
    rewind(log_builder, keep=2)

    async with publish_feed(log_builder):
        await wait_for_feed(log_builder, 2)
        await log_builder.append(AT, agent_switch("new"))
        await wait_for_feed(log_builder, 3)

    assert b"new" in agents_published(log_builder)[-1]
    after = eventlog.status.current.incarnation
    assert before is not None
    assert after is not None
    assert after.previous == before.id
    assert await eventlog.snapshots.load(AT) is None


async def test_a_running_feed_notices_a_restore(log_builder: "LogBuilder") -> None:
    async with publish_feed(log_builder) as task:
        await write_history(log_builder)
        await wait_for_feed(log_builder, 4)
        rewind(log_builder, keep=2)
        await begin_after_restore(log_builder)

        with pytest.raises(LogRestored):
            await asyncio.wait_for(task, 10)


async def test_a_leader_that_still_applies_its_last_commits_is_no_restore(
    log_builder: "LogBuilder", monkeypatch: pytest.MonkeyPatch
) -> None:
    """C9: a single look at the end of the log proves nothing."""
    await write_history(log_builder)
    eventlog = log_builder.eventlog
    before = eventlog.status.current.incarnation
    looks = iter([2, 2])
    last_position = log_builder.log.last_position

    async def lag(number: int) -> int:
        return next(looks, await last_position(number))

    monkeypatch.setattr(log_builder.log, "last_position", lag)

    mark = await restore.resume_mark(eventlog, SHARD, restore.ReaderMark(4))

    assert mark.position == 4
    assert eventlog.status.current.incarnation == before
