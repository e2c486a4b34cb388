"""The projector against a real Postgres: exact rows through restarts, fences and outages."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.ports import LogEntry
from fairlead_projector import database
from fairlead_projector.errors import ShardFenced
from fairlead_projector.migrations import migrate
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.writer import GroupWriter
from fairlead_projector.projection.store import TableStore
from fairlead_projector.task_supervisor import Complaints
from fairlead_schema.events import (
    PromptAdmitted,
    PromptPromoted,
    SessionArchived,
    SessionCreated,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address, shard
from fairlead_testing.postgres import Server

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

AT = Address("default", "ses_1")
SHARD = shard(AT.session_id)
NEIGHBOUR = next(Address("default", f"ses_{n}") for n in range(2, 99) if shard(f"ses_{n}") == SHARD)
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi\\\t\n"), delivery="queue")
PROMOTED = PromptPromoted(message_id="msg_1", prompt=Prompt(text="hi\\\t\n"), created=2)


async def test_rows_follow_the_log(log_builder: "LogBuilder", projection: "Projection") -> None:
    log_builder.commit(AT, CREATED, ADMITTED)
    async with projection.run():
        await log_builder.append(AT, PROMOTED)
        await projection.wait_until(projection.is_caught_up)

    (session,) = projection.rows("SELECT * FROM read.session")
    assert (session["seq"], session["position"], session["pending"], session["owed"]) == (
        3,
        2,
        0,
        True,
    )
    (message,) = projection.rows("SELECT * FROM read.session_message")
    assert (message["seq"], message["type"], message["message"]["text"]) == (3, "user", "hi\\\t\n")
    (inbox,) = projection.rows("SELECT * FROM read.session_input")
    assert (inbox["admitted_seq"], inbox["promoted_seq"]) == (2, 3)
    commits = [json.loads(entry.payload)["events"] for entry in log_builder.log.entries[SHARD]]
    events = projection.rows("SELECT * FROM read.session_event ORDER BY seq")
    assert [event["data"] for event in events] == [
        event["data"] for commit in commits for event in commit
    ]


async def test_a_writer_applies_nothing_twice(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    entries = [log_builder.commit(AT, CREATED), log_builder.commit(AT, SessionArchived())]
    async with open_writer(projection) as writer:
        await writer.write(entries)
        await writer.write(entries)

        assert writer.held.mark.position == 2
    async with open_writer(projection) as writer:
        await writer.write(entries)

    assert len(projection.rows("SELECT * FROM read.session_event")) == 2


async def test_a_stale_writer_is_fenced_and_leaves_no_trace(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    first, second = log_builder.commit(AT, CREATED), log_builder.commit(AT, SessionArchived())
    async with open_writer(projection) as stale, open_writer(projection) as fresh:
        await stale.write([first])
        await fresh.load_checkpoint()
        await fresh.write([second])

        with pytest.raises(ShardFenced):
            await stale.write([second])

    (session,) = projection.rows("SELECT * FROM read.session")
    assert session["seq"] == 2


async def test_poison_breaks_one_session_and_is_buried_once(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    log_builder.commit(AT, CREATED)
    log_builder.raw(AT, b"{}")
    log_builder.raw(AT, b"{}")
    log_builder.commit(NEIGHBOUR, CREATED)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)

    rows = projection.rows("SELECT session_id, broken FROM read.session")
    reasons = {row["session_id"]: row["broken"] for row in rows}
    assert (reasons[AT.session_id] or "").startswith("malformed commit")
    assert reasons[NEIGHBOUR.session_id] is None
    assert isinstance(log_builder.eventlog.dead_letters, MemoryDeadLetters)
    assert [letter[0] for letter in log_builder.eventlog.dead_letters.letters] == ["projector"]


async def test_what_the_tables_refuse_breaks_only_its_session(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    log_builder.commit(AT, CREATED)
    log_builder.commit(NEIGHBOUR, CREATED)
    log_builder.commit(AT, SessionArchived(), time=2**70)
    log_builder.commit(NEIGHBOUR, SessionArchived())
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)

    sessions = {row["session_id"]: row for row in projection.rows("SELECT * FROM read.session")}
    assert sessions[AT.session_id]["broken"].startswith("not storable")
    assert sessions[NEIGHBOUR.session_id]["seq"] == 2


async def test_an_outage_of_postgres_loses_nothing_and_is_told(
    log_builder: "LogBuilder", projection: "Projection", postgres: Server
) -> None:
    log_builder.commit(AT, CREATED)
    complaints = Complaints()
    complaint = complaints.probe("postgres")
    async with projection.run(complaints):
        await projection.wait_until(projection.is_caught_up)
        await asyncio.to_thread(postgres.stop)
        await log_builder.append(AT, SessionArchived())
        await projection.wait_until(lambda: complaint() is not None)

        await asyncio.to_thread(postgres.start)
        await projection.wait_until(projection.is_caught_up)
        await projection.wait_until(lambda: complaint() is None)

    assert len(projection.rows("SELECT * FROM read.session_event")) == 2


@pytest.mark.parametrize("size", [1, 500], ids=["one by one", "in one batch"])
async def test_an_exact_repeat_of_the_last_commit_changes_no_row(
    log_builder: "LogBuilder", projection: "Projection", size: int
) -> None:
    """H-16, D7: only the position and the bytes of the session count what the log has more."""
    entries = log_builder.log.entries[SHARD]
    for event in (CREATED, ADMITTED, PROMOTED):
        await log_builder.append(AT, event)
        await log_builder.log.append_raw(AT, entries[-1].payload)
        await log_builder.append(NEIGHBOUR, event)
    for at in (AT, NEIGHBOUR):
        await log_builder.append(at, SessionArchived())
    async with open_writer(projection) as writer:
        for start in range(0, len(entries), size):
            await writer.write(entries[start : start + size])

    repeated, once = (all_rows(projection, at) for at in (AT, NEIGHBOUR))
    assert [row["broken"] for row in repeated["session"]] == [None]
    assert repeated == once
    assert isinstance(log_builder.eventlog.dead_letters, MemoryDeadLetters)
    assert log_builder.eventlog.dead_letters.letters == []


def all_rows(projection: "Projection", at: Address) -> dict[str, list[dict[str, object]]]:
    """The rows of a session, without what differs between two sessions with the same events."""
    own = {"session_id", "position", "event_id", "log_bytes"}
    tables = ("session", "session_input", "session_message", "session_event")
    return {
        table: sorted(
            (
                {name: value for name, value in row.items() if name not in own}
                for row in projection.rows(f"SELECT * FROM read.{table}")  # noqa: S608
                if row["session_id"] == at.session_id
            ),
            key=str,
        )
        for table in tables
    }


class OneShard:
    """A writer of one shard, whose failures are raised."""

    def __init__(self, projection: "Projection", connection: database.Connection) -> None:
        eventlog = projection.log_builder.eventlog
        self.held = HeldShard(eventlog, SHARD)
        self._store = TableStore(connection)
        self._writer = GroupWriter(self._store, eventlog)

    async def load_checkpoint(self) -> None:
        await self.held.load_checkpoint(lambda: nullcontext(self._store))

    async def write(self, entries: Sequence[LogEntry]) -> None:
        for error in (await self._writer.write({self.held: entries})).values():
            raise error


@asynccontextmanager
async def open_writer(projection: "Projection") -> AsyncIterator[OneShard]:
    async with await database.connect(projection.dsn) as connection:
        await migrate(connection)
        writer = OneShard(projection, connection)
        await writer.load_checkpoint()
        yield writer
