"""A stored session keeps its rows and leaves the log; a restore and a rebuild give the same rows (ADR 0084)."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from fairlead_eventlog.memory.snapshots import MemorySnapshots
from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.register_ports import Snapshot
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.purge import erase_stored
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_projector.projection.rows import ProjectedSession
from fairlead_projector.projection.stored.stored_files import project_files
from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
    SessionPurged,
    StepEnded,
    StepStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import decode, encode
from fairlead_schema.subjects import Address, shard
from fairlead_testing.exports import MODEL
from fairlead_testing.stored import marker, replay_commits

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

AT = Address("default", "ses_1")
CREATED = SessionCreated(
    title="A session", project_id="prj_1", location=LocationRef(directory="/work")
)
PROMPT = Prompt(text="hello")
TURN = (
    PromptAdmitted(message_id="msg_1", prompt=PROMPT, delivery="queue"),
    PromptPromoted(message_id="msg_1", prompt=PROMPT, created=2),
    StepStarted(assistant_message_id="msg_2", agent="build", model=MODEL),
    StepEnded(assistant_message_id="msg_2", finish="stop", cost=0.5, tokens=Tokens()),
)
SEQ = 1 + len(TURN)
SESSION = "SELECT session_id, seq, position, title, cost, stored, log_bytes FROM projection.session"
TOTALS = (
    "SELECT sessions, cost, tokens, pending, log_bytes FROM projection.tenant_total ORDER BY shard"
)
ROWS = "SELECT seq, message_id FROM projection.session_message ORDER BY seq"


async def live(log_builder: "LogBuilder") -> list[bytes]:
    await log_builder.append(AT, CREATED)
    await log_builder.append(AT, *TURN)
    return [entry.payload for entry in log_builder.log.entries[shard(AT.session_id)]]


async def bring_back(log_builder: "LogBuilder", payloads: list[bytes]) -> None:
    events = [event for payload in payloads for event in decode(payload).events]
    for commit in replay_commits(events):
        await log_builder.log.append_raw(AT, encode(commit))
    log_builder.rewind(AT)


def test_a_marker_keeps_the_row_and_the_first_event_behind_it_makes_it_again(
    log_builder: "LogBuilder",
) -> None:
    sessions: dict[Address, ProjectedSession] = {}
    entries = [log_builder.commit(AT, CREATED), log_builder.commit(AT, *TURN)]
    stored = log_builder.commit(AT, marker(SEQ))
    events = [event for entry in entries for event in decode(entry.payload).events]
    back = [log_builder.raw(AT, encode(commit)) for commit in replay_commits(events)]

    changes = row_changes.fold_batch(
        sessions, [log_entries.decode_entry(entry) for entry in (*entries, stored)]
    )
    row = sessions[AT].row
    assert (changes.stores, changes.restarts, row.seq) == ({AT: stored.position}, set(), 0)
    assert row.stored is not None
    assert (row.stored.seq, row.stored.lacks_messages, row.cost) == (SEQ, None, 0.5)

    for number, entry in enumerate(back, start=1):
        changes = row_changes.fold_batch(sessions, [log_entries.decode_entry(entry)])
        assert changes.restarts == ({AT} if number == 1 else set())
        assert changes.broken == []
        assert (sessions[AT].row.stored is None) == (number == len(back))
    assert (sessions[AT].row.seq, sessions[AT].row.cost) == (SEQ, 0.5)


async def test_erasing_spares_the_outputs_of_a_session_that_is_back(
    log_builder: "LogBuilder",
) -> None:
    """A rebuild reads the marker again, behind which the session lives on."""
    eventlog = log_builder.eventlog

    async def pieces() -> AsyncIterator[bytes]:
        yield b"long"

    payloads = await live(log_builder)
    await eventlog.outputs.put(AT, "out_1", pieces(), mime="text/plain")
    await eventlog.snapshots.store(AT, Snapshot(Head(1, 2), b"old"))
    await log_builder.append(AT, marker(SEQ))
    position = log_builder.log.entries[shard(AT.session_id)][-1].position

    for _ in range(2):
        await erase_stored(eventlog, {AT: position})

    assert await eventlog.outputs.stat("default", "out_1") is None
    assert isinstance(eventlog.snapshots, MemorySnapshots)
    assert eventlog.snapshots.snapshots == {}
    assert len((await eventlog.log.read(AT, after=START)).commits) == 1
    await bring_back(log_builder, payloads)
    await eventlog.outputs.put(AT, "out_1", pieces(), mime="text/plain")
    await erase_stored(eventlog, {AT: position})
    assert await eventlog.outputs.stat("default", "out_1") is not None


@pytest.mark.integration
async def test_the_rows_of_a_stored_session_stay_and_come_back_the_same(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """Lists, messages and totals do not change, and a rebuild of the restored log gives the same rows."""
    payloads = await live(log_builder)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        messages = projection.rows(ROWS)
        (before,) = projection.rows(TOTALS)
        await log_builder.append(AT, marker(SEQ))
        await projection.wait_until(projection.is_caught_up)
        (stored,) = projection.rows(SESSION)
        (meanwhile,) = projection.rows(TOTALS)
        assert (stored["seq"], stored["cost"], stored["stored"]["seq"]) == (0, 0.5, SEQ)
        assert projection.rows(ROWS) == messages
        assert len((await log_builder.eventlog.log.read(AT, after=START)).commits) == 1
        await bring_back(log_builder, payloads)
        await projection.wait_until(projection.is_caught_up)

    (row,) = projection.rows(SESSION)
    assert (row["seq"], row["cost"], row["stored"]) == (SEQ, 0.5, None)
    assert projection.rows(ROWS) == messages
    assert _without_bytes(before) == _without_bytes(meanwhile)
    assert meanwhile["log_bytes"] == stored["log_bytes"] < before["log_bytes"]
    assert _without_bytes(projection.rows(TOTALS)[0]) == _without_bytes(before)
    whole = await digest(projection.dsn)
    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert await digest(projection.dsn) == whole


@pytest.mark.integration
async def test_a_rebuild_keeps_a_stored_session_in_lists_and_its_file_brings_all_rows(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """Without the file the marker has the row of the list, and the session is named."""
    payloads = await live(log_builder)
    await log_builder.append(Address("default", "ses_2"), CREATED)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        await log_builder.append(AT, marker(SEQ))
        await projection.wait_until(projection.is_caught_up)
    whole, eventlog = await digest(projection.dsn), log_builder.eventlog
    totals = projection.rows(TOTALS)

    await rebuild(projection.dsn, eventlog, progress=lambda _progress: None)
    missing = await project_files(projection.dsn, eventlog, lambda _at, _stored: None)

    assert [session.at for session in missing] == [AT]
    listed = {row["session_id"]: row for row in projection.rows(SESSION)}
    assert listed["ses_2"]["stored"] is None
    assert listed["ses_1"]["title"] == "A session"
    assert listed["ses_1"]["stored"]["lacksMessages"] is True
    assert projection.rows(TOTALS) == totals
    assert projection.rows(ROWS) == []
    assert await project_files(projection.dsn, eventlog, lambda _at, _stored: payloads) == []
    assert await digest(projection.dsn) == whole


@pytest.mark.integration
async def test_a_stored_session_is_purged_with_its_rows(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """H-29"""
    await live(log_builder)
    await log_builder.append(AT, marker(SEQ))
    await log_builder.append(AT, SessionPurged(cost=0.5))
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)

    assert projection.rows(SESSION) == projection.rows(ROWS) == []
    assert [float(row["cost"]) for row in projection.rows(TOTALS)] == [0.5]


def _without_bytes(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "log_bytes"}
