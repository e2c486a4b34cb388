"""A purged session leaves no row, no content in the log, and only its end in the feed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.feed import MemoryFeed
from fairlead_eventlog.memory.snapshots import MemorySnapshots
from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.register_ports import Snapshot
from fairlead_projector.feed.publisher import publish_shard
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.purge import erase
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_projector.projection.rows import ProjectedSession
from fairlead_projector.settings import FeedTimings
from fairlead_schema.events import (
    PromptAdmitted,
    PromptPromoted,
    SessionArchived,
    SessionCreated,
    SessionPurged,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address, shard

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

AT = Address("default", "ses_1")
NEIGHBOUR = Address("default", "ses_2")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
SECRET = Prompt(text="secret")
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=SECRET, delivery="queue")
PROMOTED = PromptPromoted(message_id="msg_1", prompt=SECRET, created=2)
MESSAGES = "session_message"
TABLES = ("session", "session_input", MESSAGES, "session_event")


def test_a_purge_is_told_with_its_position_and_forgets_the_session(
    log_builder: "LogBuilder",
) -> None:
    """H-29: this holds also for a broken and for an unknown session."""
    sessions: dict[Address, ProjectedSession] = {}
    log_builder.commit(AT, CREATED)
    entries = [log_builder.commit(AT, ADMITTED), log_builder.commit(AT, SessionPurged())]

    changes = row_changes.fold_batch(
        sessions, [log_entries.decode_entry(entry) for entry in entries]
    )
    alone = row_changes.fold_batch({}, [log_entries.decode_entry(entries[-1])])

    assert changes.purges == alone.purges == {AT: entries[-1].position}
    assert sessions == {}
    assert (alone.sessions, alone.broken) == ({}, [])


async def test_erasing_forgets_all_but_the_last_word_however_often(
    log_builder: "LogBuilder",
) -> None:
    """H-29: a repeated erasure completes one that crashed."""
    eventlog = log_builder.eventlog
    for events in ((CREATED, ADMITTED), (PROMOTED,), (SessionPurged(),)):
        await log_builder.append(AT, *events)
    await log_builder.append(NEIGHBOUR, CREATED, ADMITTED)
    await eventlog.snapshots.store(AT, Snapshot(Head(1, 2), b"secret"))
    last = log_builder.log.entries[shard(AT.session_id)][-1].position

    for _ in range(2):
        await erase(eventlog, {AT: last})

    commits = (await eventlog.log.read(AT, after=START)).commits
    assert [
        recorded.event for stored_commit in commits for recorded in stored_commit.commit.events
    ] == [SessionPurged()]
    assert isinstance(eventlog.snapshots, MemorySnapshots)
    assert eventlog.snapshots.snapshots == {}
    assert (await eventlog.log.head(NEIGHBOUR)).seq == 2


async def test_what_calls_left_aside_is_erased_too(log_builder: "LogBuilder") -> None:
    """H-29, J-35: no managed output outlives its session, even without an event that names it."""
    outputs = log_builder.eventlog.outputs

    async def pieces() -> AsyncIterator[bytes]:
        yield b"secret"

    for at, output_id in ((AT, "out_1"), (AT, "out_2"), (NEIGHBOUR, "out_3")):
        await outputs.put(at, output_id, pieces(), mime="text/plain")
    await log_builder.append(AT, CREATED)
    await log_builder.append(AT, SessionPurged())
    last = log_builder.log.entries[shard(AT.session_id)][-1].position

    for _ in range(2):
        await erase(log_builder.eventlog, {AT: last})

    for output_id in ("out_1", "out_2"):
        assert await outputs.stat("default", output_id) is None
    assert await outputs.stat("default", "out_3") is not None


async def test_the_feed_keeps_the_end_of_a_purged_session_alone(log_builder: "LogBuilder") -> None:
    """Readers of the feed get the purge; late readers get nothing else."""
    log_builder.commit(AT, CREATED, ADMITTED)
    log_builder.commit(AT, PROMOTED, SessionArchived())
    feed = log_builder.eventlog.feed
    assert isinstance(feed, MemoryFeed)

    publisher = asyncio.create_task(
        publish_shard(
            shard(AT.session_id),
            log_builder.eventlog,
            on_healthy=lambda: None,
            timings=FeedTimings(linger_s=0.0),
        )
    )
    try:
        async with asyncio.timeout(5):
            while len(feed.items) < 4:
                await asyncio.sleep(0.01)
            await log_builder.append(AT, SessionPurged())
            while len(feed.items) != 1:
                await asyncio.sleep(0.01)
    finally:
        publisher.cancel()
        with suppress(asyncio.CancelledError):
            await publisher

    (last,) = feed.items.values()
    assert last.subject == "fairlead.event.default.ses_1.session.purged"


@pytest.mark.integration
async def test_no_row_of_a_purged_session_is_left(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """H-29: rows, log and snapshot go, the neighbour stays, and a rebuild gives the same rows."""
    await log_builder.append(AT, CREATED, ADMITTED)
    await log_builder.append(NEIGHBOUR, CREATED, ADMITTED)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        await log_builder.append(AT, PROMOTED)
        await log_builder.append(AT, SessionPurged())
        await projection.wait_until(projection.is_caught_up)

    for table in TABLES:
        rows = projection.rows(f"SELECT DISTINCT session_id FROM projection.{table}")  # noqa: S608
        assert [row["session_id"] for row in rows] == (["ses_2"] if table != MESSAGES else [])
    assert len((await log_builder.eventlog.log.read(AT, after=START)).commits) == 1
    before = await digest(projection.dsn)
    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert await digest(projection.dsn) == before


@pytest.mark.integration
async def test_a_purge_that_could_not_erase_is_repeated(
    log_builder: "LogBuilder", projection: "Projection", monkeypatch: pytest.MonkeyPatch
) -> None:
    """H-29: the checkpoint never passes a purge whose erasure failed."""
    await log_builder.append(AT, CREATED, ADMITTED)
    erase, failures = log_builder.log.erase, 2

    async def erase_later(at: Address, *, before: int | None = None) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise LogUnavailable("away")
        await erase(at, before=before)

    monkeypatch.setattr(log_builder.log, "erase", erase_later)
    async with projection.run():
        await log_builder.append(AT, SessionPurged())
        await projection.wait_until(lambda: failures < 0 and projection.is_caught_up())

    assert projection.rows("SELECT * FROM projection.session_event") == []
    assert len((await log_builder.eventlog.log.read(AT, after=START)).commits) == 1


@pytest.mark.integration
@pytest.mark.parametrize("is_one_batch", [False, True], ids=["one by one", "in one batch"])
async def test_an_exact_repeat_of_the_last_word_is_not_counted_again(
    log_builder: "LogBuilder", projection: "Projection", *, is_one_batch: bool
) -> None:
    """H-16, D7: what a purged session used counts once, also after a rebuild."""
    totals = "SELECT cost, tokens, sessions FROM projection.tenant_total"
    await log_builder.append(AT, CREATED, ADMITTED)
    await log_builder.append(AT, SessionPurged(cost=0.5, tokens=50))
    last = log_builder.log.entries[shard(AT.session_id)][-1].payload
    if is_one_batch:
        await log_builder.log.append_raw(AT, last)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        once = projection.rows(totals)
        await log_builder.log.append_raw(AT, last)
        await projection.wait_until(projection.is_caught_up)

    assert [(float(row["cost"]), row["tokens"], row["sessions"]) for row in once] == [(0.5, 50, 0)]
    assert projection.rows(totals) == once
    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert projection.rows(totals) == once
