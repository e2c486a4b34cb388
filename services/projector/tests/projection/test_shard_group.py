"""The shards of one process share their transactions, and fail each by itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest
from typing_extensions import override

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.snapshots import MemorySnapshots
from fairlead_projector import database
from fairlead_projector.errors import ShardFenced
from fairlead_projector.migrations import migrate
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.shard_group import ShardGroup
from fairlead_projector.projection.group.writer import GroupWriter
from fairlead_projector.projection.shard import ReadOptions, project_shard
from fairlead_projector.projection.store import TableStore
from fairlead_projector.shard_balance import ShardShare
from fairlead_schema.events import SessionArchived, SessionCreated, SessionPurged
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import SHARDS, Address, shard

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
NUMBERS = range(200)
HERE, THERE, ELSEWHERE = (
    next(Address("default", f"ses_{n}") for n in NUMBERS if shard(f"ses_{n}") == wanted)
    for wanted in (1, 4, 6)
)
SEQS = "SELECT session_id, seq, broken FROM read.session"
EVENTS = "SELECT session_id, seq FROM read.session_event ORDER BY 1, 2"


class Projector(NamedTuple):
    """A writer of all shards, without tasks and without readers."""

    writer: GroupWriter
    shards: dict[int, HeldShard]

    async def load_checkpoints(self) -> None:
        for held in self.shards.values():
            await held.load_checkpoint(lambda: nullcontext(self.writer.store))

    async def write(self, log_builder: "LogBuilder") -> dict[int, Exception]:
        """Write everything that the log has in one round."""
        log = log_builder.log.entries
        gathered = {held: tuple(log[number]) for number, held in self.shards.items()}
        return {held.shard: e for held, e in (await self.writer.write(gathered)).items()}


@asynccontextmanager
async def open_projector(projection: "Projection") -> AsyncIterator[Projector]:
    eventlog = projection.log_builder.eventlog
    async with await database.connect(projection.dsn) as connection:
        await migrate(connection)
        shards = {number: HeldShard(eventlog, number) for number in range(SHARDS)}
        projector = Projector(GroupWriter(TableStore(connection), eventlog), shards)
        await projector.load_checkpoints()
        yield projector


def transactions(projection: "Projection", *sessions: Address) -> set[str]:
    """The transactions that wrote the rows of some sessions last."""
    wanted = {at.session_id for at in sessions}
    rows = projection.rows("SELECT session_id, xmin::text AS xmin FROM projection.session")
    return {row["xmin"] for row in rows if row["session_id"] in wanted}


def seqs(projection: "Projection") -> dict[str, int]:
    return {row["session_id"]: row["seq"] for row in projection.rows(SEQS)}


async def test_one_transaction_has_the_commits_of_all_shards(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    for at in (HERE, THERE, ELSEWHERE):
        log_builder.commit(at, CREATED)
    async with open_projector(projection) as projector:
        assert await projector.write(log_builder) == {}

    assert len(transactions(projection, HERE, THERE, ELSEWHERE)) == 1
    assert projection.is_caught_up()


async def test_a_fenced_shard_takes_nothing_from_the_others(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """Neither writer loses or repeats a commit, whichever of their shards the other one moved."""
    async with open_projector(projection) as stale, open_projector(projection) as fresh:
        for at in (HERE, THERE):
            log_builder.commit(at, CREATED)
        only_here = Projector(fresh.writer, {1: fresh.shards[1]})
        assert await only_here.write(log_builder) == {}
        for at in (HERE, THERE):
            log_builder.commit(at, SessionArchived())

        failed = await stale.write(log_builder)

        assert [type(error) for error in failed.values()] == [ShardFenced]
        assert list(failed) == [1]
        assert seqs(projection) == {HERE.session_id: 1, THERE.session_id: 2}
        assert list(await fresh.write(log_builder)) == [4]

    assert [(row["session_id"], row["seq"]) for row in projection.rows(EVENTS)] == sorted(
        (at.session_id, seq) for at in (HERE, THERE) for seq in (1, 2)
    )


async def test_two_writers_of_the_same_shards_never_wait_for_each_other(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """They take the rows in the same order, so Postgres never has to end one of them."""
    sessions = [Address("default", f"ses_{number}") for number in range(16)]
    async with open_projector(projection) as one, open_projector(projection) as other:
        for _round in range(10):
            for at in sessions:
                log_builder.commit(at, SessionArchived() if _round else CREATED)
            backwards = other._replace(shards=dict(reversed(other.shards.items())))
            async with asyncio.timeout(20):
                failed = await asyncio.gather(one.write(log_builder), backwards.write(log_builder))
            assert {type(e) for group in failed for e in group.values()} <= {ShardFenced}
            for projector in (one, other):
                await projector.load_checkpoints()

    assert set(seqs(projection).values()) == {10}
    assert len(projection.rows(EVENTS)) == 10 * len(sessions)


async def test_what_postgres_refuses_breaks_one_session_of_one_shard(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    for at in (HERE, THERE, ELSEWHERE):
        log_builder.commit(at, CREATED)
    log_builder.commit(THERE, SessionArchived(), time=2**70)
    for at in (HERE, THERE, ELSEWHERE):
        log_builder.commit(at, SessionArchived())
    async with open_projector(projection) as projector:
        assert await projector.write(log_builder) == {}

    rows = {row["session_id"]: row for row in projection.rows(SEQS)}
    assert rows[THERE.session_id]["broken"].startswith("not storable")
    assert rows[HERE.session_id]["seq"] == rows[ELSEWHERE.session_id]["seq"] == 2
    assert projection.is_caught_up()


class SilentSnapshots(MemorySnapshots):
    """Snapshots that cannot be removed for now."""

    @override
    async def remove(self, at: Address) -> None:
        raise LogUnavailable(f"nobody removes the snapshot of {at.session_id}")


async def test_what_the_log_refuses_stops_one_shard(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """A purge that cannot erase is repeated, and the other shards go on."""
    log_builder.eventlog = replace(log_builder.eventlog, snapshots=SilentSnapshots())
    for at in (HERE, THERE, ELSEWHERE):
        log_builder.commit(at, CREATED)
    log_builder.commit(THERE, SessionPurged())
    log_builder.commit(ELSEWHERE, SessionArchived())
    async with open_projector(projection) as projector:
        failed = await projector.write(log_builder)

    assert {number: type(error) for number, error in failed.items()} == {4: LogUnavailable}
    assert seqs(projection) == {HERE.session_id: 1, ELSEWHERE.session_id: 2}


@asynccontextmanager
async def run_group(
    projection: "Projection", *, gather_s: float, ahead_max: int = 500
) -> AsyncIterator[None]:
    share, options = ShardShare(), ReadOptions(ahead_max)
    eventlog = projection.log_builder.eventlog
    async with ShardGroup(projection.dsn, eventlog, gather_s=gather_s) as group:
        jobs = (
            partial(project_shard, number, group, share, options=options)
            for number in range(SHARDS)
        )
        async with projection.run_tasks(*jobs):
            await projection.wait_until(lambda: len(share.shards) == SHARDS)
            yield


async def test_an_entry_is_written_at_once_and_a_burst_together(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """The gathering time is far longer than this test: only a full reader ends it."""
    async with run_group(projection, gather_s=600, ahead_max=3):
        await log_builder.append(HERE, CREATED)
        await projection.wait_until(lambda: HERE.session_id in seqs(projection))

        await log_builder.append(THERE, CREATED)
        for event in (CREATED, SessionArchived(), SessionArchived()):
            await log_builder.append(ELSEWHERE, event)
        await projection.wait_until(projection.is_caught_up)

    assert seqs(projection)[ELSEWHERE.session_id] == 3
    assert len(transactions(projection, THERE, ELSEWHERE)) == 1
    assert len(transactions(projection, HERE, THERE)) == 2


async def test_a_stalled_postgres_delays_the_rows_and_loses_nothing(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """More entries come meanwhile than the readers keep."""
    async with run_group(projection, gather_s=0.01, ahead_max=5):
        for at in (HERE, THERE):
            await log_builder.append(at, CREATED)
        await projection.wait_until(projection.is_caught_up)
        with projection.connect() as stall:
            stall.execute("BEGIN")
            stall.execute("LOCK TABLE projection.checkpoint IN ACCESS EXCLUSIVE MODE")
            for _number in range(40):
                await log_builder.append(HERE, SessionArchived())
                await log_builder.append(THERE, SessionArchived())
            await asyncio.sleep(0.2)
            assert set(seqs(projection).values()) == {1}
            stall.execute("ROLLBACK")
        await projection.wait_until(projection.is_caught_up)

    assert set(seqs(projection).values()) == {41}
    assert len(projection.rows(EVENTS)) == 82
