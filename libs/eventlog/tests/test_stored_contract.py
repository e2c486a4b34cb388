"""Logs with a marker: the seqs begin again behind it, and every reader comes to the same end (ADR 0084)."""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, NotFinalised, SessionErased
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_eventlog.replicas.contiguity import read_contiguous, read_raw
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_eventlog.session_writer import AssumedState, SessionWriter
from fairlead_schema.events import SessionArchived
from fairlead_schema.record import LEVEL_NEWEST, Commit, Draft, Recorded, encode
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session
from fairlead_testing.commits import read_all
from fairlead_testing.exports import parent_life
from fairlead_testing.stored import marker, replay_commits

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@pytest.fixture
async def finalised(eventlog: EventLog) -> EventLog:
    await eventlog.status.finalise(LEVEL_NEWEST)
    return eventlog


async def live(eventlog: EventLog, at: Address) -> list[Recorded]:
    """Write a whole session, and return its events."""
    head, events = START, list[Recorded]()
    for by, new in parent_life("/work"):
        drafts = tuple(Draft(ids.event_id(), 1, event) for event in new)
        stored = await eventlog.log.append(at, ids.commit_id(), drafts, after=head, by=by)
        head, events = stored.head, [*events, *stored.commit.events]
    return events


async def store(eventlog: EventLog, at: Address) -> StoredCommit:
    head = await eventlog.log.head(at)
    draft = Draft(ids.event_id(), 1, marker(head.seq))
    return await eventlog.log.append(at, ids.commit_id(), (draft,), after=head)


async def restore(eventlog: EventLog, at: Address, events: list[Recorded]) -> Head:
    head = await eventlog.log.head(at)
    for commit in replay_commits(events):
        head = (await eventlog.log.restore(at, commit, encode(commit), after=head)).head
    return head


def open_cache(eventlog: EventLog) -> SessionCache[Session]:
    return SessionCache(eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=4)


async def test_a_marker_has_the_seq_zero_and_what_it_stores_can_be_erased(
    finalised: EventLog, at: Address
) -> None:
    events = await live(finalised, at)
    stored = await store(finalised, at)

    await finalised.log.erase(at, before=stored.position)

    assert await finalised.log.head(at) == await finalised.log.end(at) == Head(stored.position, 0)
    back = await restore(finalised, at, events)
    assert back.seq == events[-1].seq
    for seq in (0, 1, len(events) // 2, len(events)):
        head = await finalised.log.locate(at, seq)
        assert head.seq <= seq


async def test_a_writer_who_missed_the_marker_writes_nothing(
    finalised: EventLog, at: Address
) -> None:
    await live(finalised, at)
    cache = open_cache(finalised)
    before = await cache.load(at)
    await store(finalised, at)
    writer = SessionWriter(finalised.log, cache, ids, tries_max=3)
    drafts = (Draft(ids.event_id(), 1, parent_life("/work")[0][1][0]),)

    for head in (before.head, START):
        with pytest.raises(AppendConflict):
            await finalised.log.append(at, ids.commit_id(), drafts, after=head)
    now = await cache.load_confirmed(at)
    assert now.state.stored is not None
    with pytest.raises(SessionErased):
        await writer.append(at, now, drafts, commit_id=ids.commit_id(), folded=now.state)


async def test_every_reader_comes_across_a_marker_to_the_same_session(
    finalised: EventLog, at: Address
) -> None:
    """A warm cache, a snapshot, a full replay and both ordered readers, whatever is erased by then."""
    events = await live(finalised, at)
    warm, stale = open_cache(finalised), open_cache(finalised)
    before = await warm.load(at)
    await stale.save_snapshot(at, before)
    stored = await store(finalised, at)
    await finalised.log.erase(at, before=stored.position)
    head = await restore(finalised, at, events)

    cold = await SessionCache(
        finalised.log, memory_eventlog().snapshots, SESSION_FOLD, capacity=1
    ).load(at, reach=head.position)
    from_snapshot = await open_cache(finalised).load(at, reach=head.position)
    confirmed = await warm.load_confirmed(at)

    assert confirmed[:2] == from_snapshot[:2] == cold[:2]
    assert confirmed.state.transcript == before.state.transcript
    ordered = [
        event
        async for commit in read_contiguous(
            finalised.log, at, after=START, limit=3, reach=head.position
        )
        for event in commit.commit.events
    ]
    raw = [
        event.seq
        async for commit in read_raw(finalised.log, at, after=START, limit=3, reach=head.position)
        for event in commit.events
    ]
    assert [(one.id, one.seq) for one in ordered[1:]] == [(one.id, one.seq) for one in events]
    assert raw == [0, *(event.seq for event in events)]


async def test_a_tail_tells_the_marker_and_then_the_restored_commits(
    finalised: EventLog, at: Address
) -> None:
    events = await live(finalised, at)
    tail = cast(
        "AsyncGenerator[StoredCommit, None]", finalised.log.tail(at, after=events[-1].seq - 1)
    )
    seqs: list[int] = []
    async with asyncio.timeout(20), aclosing(tail) as commits:
        await anext(commits)
        await store(finalised, at)
        await restore(finalised, at, events)
        async for stored in commits:
            seqs.append(stored.head.seq)
            if stored.head.seq == events[-1].seq:
                break

    assert seqs == [0, events[-1].seq]


async def test_a_late_snapshot_of_a_stored_session_does_not_stay(
    finalised: EventLog, at: Address
) -> None:
    await live(finalised, at)
    cache = open_cache(finalised)
    before = await cache.load(at)
    await store(finalised, at)

    await cache.save_snapshot(at, before)

    assert await finalised.snapshots.load(at) is None


async def test_a_marker_waits_for_its_level(at: Address) -> None:
    """A13: an older release could not read the log behind it."""
    eventlog = memory_eventlog()
    await eventlog.status.finalise(LEVEL_NEWEST - 1)
    await live(eventlog, at)

    with pytest.raises(NotFinalised):
        await store(eventlog, at)


async def test_a_commit_that_was_broadcast_takes_a_cache_across_the_marker(at: Address) -> None:
    eventlog = memory_eventlog()
    await eventlog.status.finalise(LEVEL_NEWEST)
    events = await live(eventlog, at)
    cache = open_cache(eventlog)
    known: Versioned[Session] = await cache.load(at)

    known = cache.fold(known, await store(eventlog, at))
    first: Commit = replay_commits(events)[0]
    stored = await eventlog.log.restore(at, first, encode(first), after=known.head)

    assert cache.fold(known, stored).state.seq == 2
    assert AssumedState(known).head.seq == 0
    assert len(await read_all(eventlog.log, at)) > 2


@pytest.mark.parametrize("after", [0, 1, -1])
async def test_a_tail_of_a_restored_session_tells_no_old_marker(
    finalised: EventLog, at: Address, after: int
) -> None:
    """Who waits for the next event of a session that is back would take it for a stored one."""
    events = await live(finalised, at)
    stored = await store(finalised, at)
    await finalised.log.erase(at, before=stored.position)
    cursor = after if after >= 0 else events[-1].seq

    async def first() -> StoredCommit:
        tail = finalised.log.tail(at, after=cursor)
        async with aclosing(cast("AsyncGenerator[StoredCommit, None]", tail)) as commits:
            return await anext(commits)

    async with asyncio.timeout(20):
        head = await restore(finalised, at, events)
        drafts = (Draft(ids.event_id(), 1, SessionArchived()),)
        await finalised.log.append(at, ids.commit_id(), drafts, after=head)
        assert (await first()).head.seq > cursor
